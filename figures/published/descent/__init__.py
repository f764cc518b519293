"""Figures of gradient descent on convex losses."""
