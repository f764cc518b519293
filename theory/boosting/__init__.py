"""Bounds on boosting."""
