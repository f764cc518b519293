"""The computing process: operating system, compiled programs, caches, and the user's own code."""
