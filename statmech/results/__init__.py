"""Results: the datasets of simulation and theory, the stores that hold them, and how they are compared."""
