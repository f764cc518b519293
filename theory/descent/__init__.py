"""Descent on stored examples for N -> infinity: samples of the examples' fields, the ladder of directions, replicas."""
