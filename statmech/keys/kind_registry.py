"""Registry of the kinds of scenarios, keyed by the config key that selects the learning algorithm.

**To add a kind** write a class in a file of `statmech/kinds/`, its simulation and theory in files of the same name in
`simulate/kinds/` and `theory/kinds/`, and one line here. Outside this package, one file is enough: a class with
methods `simulate(cell, seed)` and `solve(cell)`, and a line ``SCENARIOS[Mine.CHOICE] = Mine`` (docs/howto).
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import MutableMapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statmech.keys.scenario import AbstractScenario


class LazyKindRegistry(UserDict[Any, Any]):
    """A dict of kinds. A class given as "folder.module:Name" is imported at its first use."""

    def __getitem__(self, choice: Any) -> type[AbstractScenario]:
        if isinstance(self.data[choice], str):
            self.data[choice] = resolve_name(f"statmech.{self.data[choice]}")
        kind: type[AbstractScenario] = self.data[choice]
        return kind


SCENARIOS: MutableMapping[str, type[AbstractScenario]] = LazyKindRegistry(
    rule="kinds.online_perceptron:Scenario",
    learner="kinds.stored_examples:StoredExamples",
    boundary="classification.random_walks:Stopping",
    attention="classification.attentive_perceptron:Attention",
    booster="classification.boosting:Boosting",
    classifier="classification.cross_validation:Study",
    network="kinds.network:Network",
    loss="kinds.empirical_risk:Risk",
    descent="kinds.gradient_descent:Descent",
    clusters="kinds.risk_clusters:Clusters",
    population="kinds.risk_table:LabelledRows",
    prior="kinds.bayes_inference:Inference",
)
SCENARIOS_BY_KEY_PAIR: MutableMapping[tuple[str, str], type[AbstractScenario]] = LazyKindRegistry(
    {
        ("rule", "clusters"): "kinds.online_clusters:OnlineClusters",
        ("rule", "population"): "kinds.online_table:OnlineRows",
        ("rule", "tasks"): "kinds.online_tasks:OnlineTasks",
        ("network", "tasks"): "kinds.network_tasks:NetworkTasks",
    }
)


def get_kinds() -> dict[str, type[AbstractScenario]]:
    """Return all kinds by name, which is a key (`rule`) or two joined keys (`rule_tasks`)."""
    return {**SCENARIOS, **{"_".join(keys): kind for keys, kind in SCENARIOS_BY_KEY_PAIR.items()}}
