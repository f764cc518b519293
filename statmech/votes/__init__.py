"""Generalization errors of ensembles that vote."""
