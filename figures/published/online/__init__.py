"""Figures of online learning and of ensembles."""
