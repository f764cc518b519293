"""Distributions of inputs, tables of real data, and data sets."""
