"""The page in the browser: drag a setting and see theory move and simulation land on it (`statmech explore`).

Needs the extra: `pip install -e '.[explore]'`. The page is served on this machine alone.
"""
