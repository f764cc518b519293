"""The kernels: each simulates one trajectory or one batch of trajectories, without files or scenarios."""
