"""Kinds of scenarios that classify real data: boosting, attention, stopping and cross-validation."""
