"""Figures of classifiers on data, by cross-validation."""
