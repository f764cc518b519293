"""Figures of classifiers evaluated by cross-validation."""
