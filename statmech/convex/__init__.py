"""The vocabulary of convex losses and of inference: losses, penalties, teachers, weights, and their limits."""
