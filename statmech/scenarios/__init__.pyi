# What a kind of scenario is made of: read at run time, too (`statmech/scenarios/__init__.py`).

from .base import AbstractScenario as AbstractScenario
from .keys import PARAMETERS as PARAMETERS
from .keys import DimensionAxis as DimensionAxis
from .keys import FlipAxis as FlipAxis
from .keys import NonnegativeAxis as NonnegativeAxis
from .keys import Number as Number
from .keys import Times as Times
from .keys import Whole as Whole
from .keys import axis_of as axis_of
from .keys import config_key as config_key
from .keys import one_of as one_of
from .keys import parameter as parameter
from .kind_registry import SCENARIOS as SCENARIOS
from .page import Page as Page
from .page import View as View
from .registry import scenario_from as scenario_from
from .variables import Variable as Variable
