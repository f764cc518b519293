"""Descent on stored examples for N -> infinity: samples of the examples' fields, a ladder of directions, replicas."""
