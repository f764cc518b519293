"""Perceptrons that learn online: order-parameter equations, fluctuations of order 1/N, and errors of ensembles."""
