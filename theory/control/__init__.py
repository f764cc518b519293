"""Optimal control: keys of a config as functions of time that minimise the generalization error."""
