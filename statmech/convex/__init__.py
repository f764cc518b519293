"""Convex losses and inference: losses, penalties, teachers, weight distributions and their limits."""
