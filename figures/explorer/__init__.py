"""The page of `statmech explore`: move a slider, and theory and simulation follow.

`statmech.explore(scenario)` shows the same in a notebook. Requires the extra: `pip install -e '.[explore]'`. The
page is served only on this machine.
"""
