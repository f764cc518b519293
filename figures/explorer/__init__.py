"""The page of `statmech explore`: move a slider, and theory and simulation follow.

`statmech.explore(scenario)` shows the same in a notebook. Requires the extra: `pip install -e '.[explore]'`. The
page is served only on this machine.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """A module that is a function, too: `statmech.explore` is the name of both."""

    def __call__(self, scenario: Any = None, **overrides: Any) -> Any:
        from figures.explorer.notebook import explore

        return explore(scenario, **overrides)


sys.modules[__name__].__class__ = _CallableModule
