"""Predictions, without fits, of errors on fresh rows of the population that a data table samples."""
