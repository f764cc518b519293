"""Interactive charts for a browser, shared by explorer and report."""
