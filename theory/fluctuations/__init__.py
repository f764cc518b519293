"""One step of a student who learns online, to second order in 1/N: noise, fluctuations and bias."""
