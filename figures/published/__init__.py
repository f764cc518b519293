"""Published figures with code of their own, united by subject."""
