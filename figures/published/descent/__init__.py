"""Figures of convex losses."""
