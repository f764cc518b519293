"""Config files, user files, and the messages about mistakes in them."""
