"""Published values, for tables and figures to stand beside what is measured; none is used to compute anything."""
