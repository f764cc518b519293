"""The page of `statmech explore`: theory and simulation follow the movement of a slider.

`statmech.explore(scenario)` shows the same page in a notebook. It needs the extra `explore`. The page is served only on
this machine.
"""
