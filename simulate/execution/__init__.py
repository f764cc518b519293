"""Execution of units of work: on threads, in child processes, on clusters and into a store."""
