"""Errors and order parameters of networks of two layers."""
