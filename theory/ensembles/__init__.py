"""Ensembles of online learners: errors of the vote, fluctuations of pairs and votes."""
