"""Engines and learners of online simulations."""
