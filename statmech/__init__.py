"""Write a learning model once; play it out (`simulate`), solve it (`theory`), lay one over the other (`figures`)."""

from statmech.config import load as load
from statmech.errors import ConfigError as ConfigError
from statmech.errors import ScenarioError as ScenarioError
from statmech.errors import StatmechError as StatmechError
from statmech.errors import StoreError as StoreError
from statmech.rules import RULES as RULES
from statmech.rules import Rule as Rule
from statmech.scenario import Scenario as Scenario
from statmech.start import Start as Start

__version__ = "0.1.0"
