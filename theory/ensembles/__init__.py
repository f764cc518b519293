"""Ensembles of students who learn online: errors of the vote, fluctuations of pairs and votes."""
