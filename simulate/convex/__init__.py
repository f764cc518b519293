"""Minimisers of convex losses at finite N, each with a certificate of its distance from the minimum."""
