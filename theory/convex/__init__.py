"""Convex losses and Bayes-optimal inference: saddle-point equations, thresholds, best penalties."""
