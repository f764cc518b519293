"""Write a learning model once; play it out (`simulate`), solve it (`theory`), lay one over the other (`figures`)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statmech.attention import Attention as Attention
    from statmech.boosting import Boosting as Boosting
    from statmech.config import load as load
    from statmech.errors import ClusterError as ClusterError
    from statmech.errors import ConfigError as ConfigError
    from statmech.errors import ScenarioError as ScenarioError
    from statmech.errors import StatmechError as StatmechError
    from statmech.errors import StoreError as StoreError
    from statmech.learners import LEARNERS as LEARNERS
    from statmech.rules import RULES as RULES
    from statmech.rules import Rule as Rule
    from statmech.scenario import Scenario as Scenario
    from statmech.start import Start as Start
    from statmech.stopping import Stopping as Stopping
    from statmech.stored import StoredExamples as StoredExamples
    from statmech.study import Study as Study

__version__ = "0.1.0"

# imported when first asked for, so that `statmech --help` need not wait for numpy and pydantic
_HOMES = {
    "Attention": "statmech.attention",
    "Boosting": "statmech.boosting",
    "load": "statmech.config",
    "ClusterError": "statmech.errors",
    "ConfigError": "statmech.errors",
    "ScenarioError": "statmech.errors",
    "StatmechError": "statmech.errors",
    "StoreError": "statmech.errors",
    "LEARNERS": "statmech.learners",
    "RULES": "statmech.rules",
    "Rule": "statmech.rules",
    "Scenario": "statmech.scenario",
    "Start": "statmech.start",
    "Stopping": "statmech.stopping",
    "StoredExamples": "statmech.stored",
    "Study": "statmech.study",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'statmech' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
