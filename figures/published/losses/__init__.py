"""Figures of students that minimise a convex loss."""
