"""Descent on stored examples for N -> infinity: samples of the examples' fields, a ladder of directions, replicas.

Learners of stored examples: replica theory and learning curves.
"""
