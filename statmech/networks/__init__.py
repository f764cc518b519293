"""Errors and order parameters of two-layer networks."""
