"""Simulation of each kind of scenario, in files of the same name as in `statmech.kinds`."""
