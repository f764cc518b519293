"""Predictions of errors on fresh rows, from a data table that samples their population, without fits."""
