"""The page of `statmech explore`: move a slider, and theory and simulation follow.

`statmech.explore(scenario)` shows the same in a notebook. It needs the extra `explore`. The page is
served only on this machine.
"""
