"""Simulation of each scenario kind, in files named as in `statmech.kinds`."""
