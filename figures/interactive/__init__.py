"""Interactive charts for a browser, shared by explorer and report.

Results as one HTML file that needs no network.
"""
