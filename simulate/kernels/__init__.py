"""The kernels: each simulates one trajectory or one batch of them, without files or scenarios."""
