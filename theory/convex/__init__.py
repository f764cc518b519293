"""Predictions, without fits, of errors on fresh rows of the population that a data table samples.

Convex losses and Bayes-optimal inference: saddle-point equations, thresholds, best penalties.
"""
