# The public name of the kinds: read at run time, too (`statmech/kinds/__init__.py`).

from .registry import scenario_from as scenario_from
