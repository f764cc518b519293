"""The process that computes: operating system, compiled programs, caches, the user's own code."""
