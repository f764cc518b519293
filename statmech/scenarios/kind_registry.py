"""Registry of the kinds of scenarios, keyed by the config key that selects the learning algorithm.

**To add a kind** write a class in a file of this folder, its simulation and theory in files of the same name in
`simulate/scenarios/` and `theory/scenarios/`, and one line here. Outside this package, one file is enough: a class with
methods `simulate(cell, seed)` and `solve(cell)`, and a line ``SCENARIOS[Mine.CHOICE] = Mine`` (docs/howto).
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import MutableMapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statmech.scenarios.base import AbstractScenario


class LazyKindRegistry(UserDict[Any, Any]):
    """A dict of kinds. A class given as "module:Name" is imported at its first use."""

    def __getitem__(self, choice: Any) -> type[AbstractScenario]:
        if isinstance(self.data[choice], str):
            self.data[choice] = resolve_name(f"{__package__}.{self.data[choice]}")
        kind: type[AbstractScenario] = self.data[choice]
        return kind


SCENARIOS: MutableMapping[str, type[AbstractScenario]] = LazyKindRegistry(
    rule="online:Scenario",
    learner="stored_examples:StoredExamples",
    boundary="stopping:Stopping",
    attention="attention:Attention",
    booster="boosting:Boosting",
    classifier="cross_validation:Study",
    network="network:Network",
    loss="risk:Risk",
    descent="descent:Descent",
    clusters="gaussian_clusters:Clusters",
    population="labelled_rows:LabelledRows",
    prior="inference:Inference",
)
SCENARIOS_BY_KEY_PAIR: MutableMapping[tuple[str, str], type[AbstractScenario]] = LazyKindRegistry(
    {
        ("rule", "clusters"): "online_clusters:OnlineClusters",
        ("rule", "population"): "online_rows:OnlineRows",
        ("rule", "tasks"): "online_tasks:OnlineTasks",
        ("network", "tasks"): "network_tasks:NetworkTasks",
    }
)


def get_kinds() -> dict[str, type[AbstractScenario]]:
    """Return all kinds by name, which is a key (`rule`) or two joined keys (`rule_tasks`)."""
    return {**SCENARIOS, **{"_".join(keys): kind for keys, kind in SCENARIOS_BY_KEY_PAIR.items()}}
