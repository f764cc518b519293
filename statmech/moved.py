"""Other import paths of modules: those of earlier versions, and `statmech.simulate`, `.theory` and `.figures`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGES = ("simulate", "theory", "figures")
MOVED = {f"statmech.{name}": name for name in PACKAGES} | {
    "statmech.sweep": "statmech.scenarios.base",
    "statmech.scenario": "statmech.scenarios.online",
    "statmech.stored": "statmech.scenarios.stored_examples",
    "statmech.stopping": "statmech.scenarios.stopping",
    "statmech.attention": "statmech.scenarios.attention",
    "statmech.boosting": "statmech.scenarios.boosting",
    "statmech.study": "statmech.scenarios.cross_validation",
    "statmech.kinds": "statmech.scenarios.registry",
    "statmech.axes": "statmech.scenarios.axes",
    "statmech.variables": "statmech.scenarios.variables",
    "statmech.cost": "statmech.scenarios.cost",
    "statmech.problems": "statmech.scenarios.messages",
    "statmech.start": "statmech.scenarios.initial_conditions",
    "statmech.draws": "statmech.random_numbers",
    "statmech.votes": "statmech.majority_vote",
    "statmech.margin": "statmech.margin_averages",
    "statmech.data": "statmech.data_sets",
    "statmech.own": "statmech.plugins",
    "statmech.compiled": "statmech.jax_cache",
    "statmech.bounded": "statmech.safe_yaml",
    "statmech.dataset": "statmech.results.dataset",
    "statmech.store": "statmech.results.store",
    "statmech.export": "statmech.results.export",
    "statmech.log": "statmech.results.log",
    "statmech.status": "statmech.results.status",
    "statmech.tables": "statmech.results.tables",
    "statmech.growing": "statmech.results.sweep_store",
    "statmech.blocks": "statmech.results.chunks",
    "statmech.sealed": "statmech.results.checksums",
    "statmech.locks": "statmech.results.locks",
    "statmech.fingerprints": "statmech.results.fingerprints",
    "statmech.verdict": "statmech.results.paired_tests",
    "statmech.references": "statmech.results.citations",
    "statmech.verify": "statmech.results.verification",
    "figures.tables": "statmech.results.study_tables",
    "statmech.printed": "statmech.cli.output",
    "statmech.bar": "statmech.progress",
    "statmech.terminal": "statmech.cli.terminal",
    "statmech.interrupts": "statmech.cli.interrupts",
    "statmech.report": "figures.report.html",
    "statmech.explore": "figures.explorer",
    "statmech.explore.page": "figures.explorer.page",
    "statmech.explore.server": "figures.explorer.server",
    "statmech.explore.guard": "figures.explorer.guard",
    "statmech.explore.live": "figures.explorer.live",
    "statmech.explore.stored": "figures.explorer.stored_results",
    "statmech.explore.settings": "figures.explorer.settings",
    "statmech.explore.charts": "figures.explorer.charts",
    "statmech.explore.background": "figures.explorer.background",
    "figures.curves": "figures.series",
    "figures.charts": "figures.report.charts",
    "figures.adatron_ensemble": "figures.published.adatron_ensemble",
    "figures.attention": "figures.published.attention",
    "figures.boosting": "figures.published.boosting",
    "figures.boundaries": "figures.published.boundaries",
    "figures.capacity": "figures.published.capacity",
    "figures.digits": "figures.published.digits",
    "figures.discount": "figures.published.discount",
    "figures.ensemble": "figures.published.ensemble",
    "figures.hebb_ensemble": "figures.published.hebb_ensemble",
    "figures.learning_curves": "figures.published.learning_curves",
    "figures.minover": "figures.published.minover",
    "figures.minover_noise": "figures.published.minover_noise",
    "figures.minover_stops": "figures.published.minover_stops",
    "figures.minover_updates": "figures.published.minover_updates",
    "figures.mistakes": "figures.published.mistakes",
    "figures.passes": "figures.published.passes",
    "figures.perceptron_ensemble": "figures.published.perceptron_ensemble",
    "figures.stopping": "figures.published.stopping",
    "figures.stopping_law": "figures.published.stopping_law",
    "figures.stored_curves": "figures.published.stored_curves",
    "figures.variety": "figures.published.variety",
    "figures.votes": "figures.published.votes",
    "figures.votes_concept": "figures.published.votes_concept",
    "figures.effect": "figures.published.helpers.ensemble_panels",
    "figures.stored": "figures.published.helpers.stored_runs",
    "figures.study": "figures.published.helpers.fold_means",
    "figures.stored_overlay": "figures.overlay",
    "figures.stopping_overlay": "figures.overlay",
    "figures.boosting_overlay": "figures.overlay",
    "figures.study_overlay": "figures.overlay",
    "simulate.online": "simulate.scenarios.online",
    "simulate.stored": "simulate.scenarios.stored_examples",
    "simulate.walks": "simulate.scenarios.stopping",
    "simulate.attentive": "simulate.scenarios.attention",
    "simulate.boosting": "simulate.scenarios.boosting",
    "simulate.study": "simulate.scenarios.cross_validation",
    "simulate.gram": "simulate.kernels.gram",
    "simulate.vectors": "simulate.kernels.vectors",
    "simulate.conjunctions": "simulate.kernels.conjunctions",
    "simulate.block": "simulate.kernels.field_steps",
    "simulate.attention": "simulate.kernels.partial_sums",
    "simulate.extremes": "simulate.kernels.reductions",
    "simulate.examples": "simulate.learners.examples",
    "simulate.learnt": "simulate.learners.interface",
    "simulate.work": "simulate.execution.units",
    "simulate.into": "simulate.execution.to_store",
    "simulate.apart": "simulate.execution.isolated",
    "simulate.clusters": "simulate.execution.clusters",
    "simulate.threads": "simulate.execution.threads",
    "simulate.devices": "simulate.execution.devices",
    "simulate.classifiers": "simulate.estimators.classifiers",
    "theory.students": "theory.scenarios.online",
    "theory.stored": "theory.scenarios.stored_examples",
    "theory.walks": "theory.scenarios.stopping",
    "theory.attentive": "theory.scenarios.attention",
}


class OldPaths(MetaPathFinder, Loader):
    """Finds a module under another path; both names are of one module object."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        root, *inner = fullname.split(".")
        if root == "statmech" and len(inner) > 1 and inner[0] in PACKAGES:  # it would be a second copy of the module
            raise ModuleNotFoundError(f"import {'.'.join(inner)} instead of {fullname}", name=fullname)
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(MOVED[spec.name])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state  # its own, which the import under the other path has replaced


def find_old_paths() -> None:
    """Let `import` find modules under these paths, before it looks into folders that may hold the same file names."""
    if not any(isinstance(finder, OldPaths) for finder in sys.meta_path):
        sys.meta_path.insert(0, OldPaths())
