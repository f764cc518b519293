# The public name of the kinds: read at run time, too (`statmech/kinds/__init__.py`).

from .selection_and_vocabulary import scenario_from as scenario_from
