"""Simulation of each kind of scenario, in one module per kind, named as in `statmech.scenarios`."""
