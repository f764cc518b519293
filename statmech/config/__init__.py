"""Config files, user files, and messages about mistakes in these files."""
