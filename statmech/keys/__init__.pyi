# What a kind of scenario is made of: read at run time, too (`statmech/keys/__init__.py`).

from .key_types import PARAMETERS as PARAMETERS
from .key_types import DimensionAxis as DimensionAxis
from .key_types import FlipAxis as FlipAxis
from .key_types import NonnegativeAxis as NonnegativeAxis
from .key_types import Number as Number
from .key_types import Times as Times
from .key_types import Whole as Whole
from .key_types import axis_of as axis_of
from .key_types import config_key as config_key
from .key_types import one_of as one_of
from .key_types import parameter as parameter
from .scenario import SCENARIOS as SCENARIOS
from .scenario import AbstractScenario as AbstractScenario
from .variables import Variable as Variable
