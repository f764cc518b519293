"""Integrators of ordinary differential equations."""
