"""Gaussian averages, orthant probabilities and quadrature."""
