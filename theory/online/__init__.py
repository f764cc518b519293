"""One step of a student that learns online, to second order in 1/N: noise, fluctuations and bias.

Ensembles of online learners: vote errors, and fluctuations of pairs and votes.

Order-parameter equations of online learning.
"""
