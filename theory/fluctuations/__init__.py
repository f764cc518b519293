"""One step of a student that learns online, to second order in 1/N: noise, fluctuations and bias."""
