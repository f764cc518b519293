"""Results: the datasets of simulation and theory, their stores on disk, and their comparison."""
