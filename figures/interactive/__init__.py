"""Charts and pages for a browser, shared by explorer and report."""
