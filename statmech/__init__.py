"""Define a learning model once, simulate it (`simulate`), solve it (`theory`), and overlay the two (`figures`)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from statmech.moved import MOVED, PACKAGES, find_old_paths
from statmech.shadowed import check_packages, warn_of_shadowed

if TYPE_CHECKING:
    from figures.explorer.notebook import explore as explore
    from statmech.activations import ACTIVATIONS as ACTIVATIONS
    from statmech.activations import Activation as Activation
    from statmech.api import Results as Results
    from statmech.api import draw as draw
    from statmech.api import load_results as load_results
    from statmech.api import run as run
    from statmech.api import solve as solve
    from statmech.config import load as load
    from statmech.convex.losses import LOSSES as LOSSES
    from statmech.convex.losses import Loss as Loss
    from statmech.errors import ClusterError as ClusterError
    from statmech.errors import ConfigError as ConfigError
    from statmech.errors import ScenarioError as ScenarioError
    from statmech.errors import StatmechError as StatmechError
    from statmech.errors import StoreError as StoreError
    from statmech.learners import LEARNERS as LEARNERS
    from statmech.rules import RULES as RULES
    from statmech.rules import Rule as Rule
    from statmech.scenarios.attention import Attention as Attention
    from statmech.scenarios.boosting import Boosting as Boosting
    from statmech.scenarios.cross_validation import Study as Study
    from statmech.scenarios.inference import Inference as Inference
    from statmech.scenarios.initial_conditions import Start as Start
    from statmech.scenarios.network import Network as Network
    from statmech.scenarios.online import Scenario as Scenario
    from statmech.scenarios.risk import Risk as Risk
    from statmech.scenarios.stopping import Stopping as Stopping
    from statmech.scenarios.stored_examples import StoredExamples as StoredExamples

find_old_paths()
warn_of_shadowed()

__version__ = "0.1.0"

# imported on first use, so that `statmech --help` need not wait for numpy and pydantic
_HOMES = {
    "ACTIVATIONS": "statmech.activations",
    "Activation": "statmech.activations",
    "Attention": "statmech.scenarios.attention",
    "Boosting": "statmech.scenarios.boosting",
    "load": "statmech.config",
    "ClusterError": "statmech.errors",
    "ConfigError": "statmech.errors",
    "ScenarioError": "statmech.errors",
    "StatmechError": "statmech.errors",
    "StoreError": "statmech.errors",
    "Inference": "statmech.scenarios.inference",
    "LEARNERS": "statmech.learners",
    "LOSSES": "statmech.convex.losses",
    "Loss": "statmech.convex.losses",
    "Network": "statmech.scenarios.network",
    "RULES": "statmech.rules",
    "Results": "statmech.api",
    "Risk": "statmech.scenarios.risk",
    "Rule": "statmech.rules",
    "Scenario": "statmech.scenarios.online",
    "Start": "statmech.scenarios.initial_conditions",
    "Stopping": "statmech.scenarios.stopping",
    "StoredExamples": "statmech.scenarios.stored_examples",
    "Study": "statmech.scenarios.cross_validation",
    "draw": "statmech.api",
    "load_results": "statmech.api",
    "run": "statmech.api",
    "solve": "statmech.api",
}
__all__ = [*_HOMES, "compare", "explore", *PACKAGES]


def __getattr__(name: str) -> Any:
    if name in PACKAGES:
        check_packages(name)
        return import_module(name)
    if name == "compare" or f"statmech.{name}" in MOVED:
        return import_module(f"statmech.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'statmech' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
