"""Figures of two-layer networks that learn online."""
