"""Ensembles of online learners: vote errors, and fluctuations of pairs and votes."""
