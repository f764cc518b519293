"""How units of work run: on threads, in child processes, on clusters, and into a store."""
