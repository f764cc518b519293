"""Figures of students that minimise a convex loss.

Figures of message passing.
"""
