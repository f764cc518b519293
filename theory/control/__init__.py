"""Optimal control: the functions of time that minimise the generalization error when used as keys of a config."""
