"""Stores of results: creation, growth, checksums, locks and verification."""
