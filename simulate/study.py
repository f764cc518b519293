"""Play out a study: every classifier on every data set, each held-out fold of each shuffle."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from simulate.classifiers import Task, domain, features, made, numbers, pairs, weights
from simulate.threads import threads
from statmech import data as sources
from statmech.axes import points
from statmech.data import Data
from statmech.dataset import Progress, arrays_of, blank, tracked
from statmech.errors import ScenarioError
from statmech.study import PLANE, Study, StudyCell
from statmech.sweep import words_of

if TYPE_CHECKING:
    import xarray as xr


class Prepared(NamedTuple):
    """A data set, and the same in numbers for the classifiers that need them."""

    data: Data
    numbers: np.ndarray
    domain: Any

    def inputs(self, name: str) -> np.ndarray:
        """What a classifier sees."""
        return self.data.X if name == "boosting" else self.numbers


class Unit(NamedTuple):
    """A cell, a shuffle, one of its folds, and the examples inside and outside of it."""

    cell: StudyCell
    seed: int
    fold: int
    inside: np.ndarray
    outside: np.ndarray


def run(study: Study, progress: Progress | None = None) -> xr.Dataset:
    """Judge a study's classifiers: see `simulate.run`. Raises `ConfigError` for data that are not to be had."""
    prepared = {name: _prepared(sources.load(name)) for name in dict.fromkeys(points(study.data))}
    work = [unit for cell in study.cells() for unit in _units(study, cell, prepared[cell.data].data)]
    dataset = blank(study, seeds=study.seeds, title="statmech study", source="cross-validation on data")
    arrays = arrays_of(dataset)
    with warnings.catch_warnings(), threads() as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # a perceptron of data that no perceptron is right on
        results = pool.map(lambda unit: judge(study, unit, prepared[unit.cell.data]), work)
        for unit, found in tracked(zip(work, results, strict=True), len(work), progress):
            for name, value in found.items():
                arrays[name][(*unit.cell.index, unit.seed, unit.fold)] = value
        if study.plane:
            for cell in study.cells():
                for seed in range(study.seeds):
                    arrays["decision"][(*cell.index, seed)] = _plane(study, cell, seed, prepared[cell.data])
    notes = {name: sources.source(name).note for name in prepared}
    return dataset.assign_attrs(concepts=json.dumps(_concepts(study, prepared)), notes=json.dumps(notes))


def judge(study: Study, unit: Unit, prepared: Prepared) -> dict[str, float]:
    """What a fold's classifier comes to."""
    X, y = prepared.inputs(unit.cell.name), prepared.data.y
    inside = _visited(unit, y)
    random = unit.cell.random(study.key, unit.seed)
    model = made(Task(unit.cell, prepared.domain, inside.size, random)).fit(X[inside], y[inside])
    found = {
        "accuracy": np.mean(model.predict(X[unit.outside]) == y[unit.outside]),
        "accuracy_training": np.mean(model.predict(X[inside]) == y[inside]),
        "weights": weights(model),
        "passes_made": np.max(model.n_iter_) if "passes" in vars(unit.cell.classifier) else np.nan,
    }
    codons = sources.source(unit.cell.data).codons
    return {**found, **features(model, X[unit.outside]), **pairs(model, codons)}


def _prepared(data: Data) -> Prepared:
    return Prepared(data, numbers(data), domain(data))


def _units(study: Study, cell: StudyCell, data: Data) -> list[Unit]:
    """Every fold of every shuffle; the same for all classifiers."""
    found = []
    for seed in range(study.seeds):
        random = words_of({"folds": study.folds, "data": cell.data, "key": study.key, "seed": seed})[0]
        for fold, (inside, outside) in enumerate(_folds(study, cell.data, data, random)):
            found.append(Unit(cell, seed, fold, inside, outside))
    return found


def _folds(study: Study, name: str, data: Data, random: int) -> list[tuple[np.ndarray, np.ndarray]]:
    every = np.random.default_rng(random).permutation(data.y.size)[: study.examples]
    every.sort()
    if data.folds is not None:
        held = [data.folds[every] == fold for fold in np.unique(data.folds)]
        return [(every[~outside], every[outside]) for outside in held]
    fewest = np.unique(data.y[every], return_counts=True)[1].min()
    if fewest < study.folds:
        told = f"{study.folds} folds are more than the {fewest} examples of a class of {name}"
        raise ScenarioError([(("folds",), told)])
    cut = StratifiedKFold(study.folds, shuffle=True, random_state=random).split(every, data.y[every])
    return [(every[inside], every[outside]) for inside, outside in cut]


def _visited(unit: Unit, y: np.ndarray) -> np.ndarray:
    """The examples to learn from, in the order in which they stand."""
    by_class = unit.cell.order == "by-class"
    return unit.inside[np.argsort(y[unit.inside], kind="stable")] if by_class else unit.inside


def _plane(study: Study, cell: StudyCell, seed: int, prepared: Prepared) -> np.ndarray:
    """Whether the second class is chosen at each point of the plane (rows of the second attribute), of all examples."""
    X, y = prepared.data.X, prepared.data.y
    low, high = plane_of(X)
    one, other = (np.linspace(low[i], high[i], PLANE) for i in range(2))
    grid = np.stack(np.meshgrid(one, other), axis=-1).reshape(-1, 2)
    scale = np.abs(X).max()
    model = made(Task(cell, prepared.domain, len(y), cell.random(study.key, seed))).fit(X / scale, y)
    chosen = model.predict(grid / scale) == np.unique(y)[-1]
    return chosen.reshape(PLANE, PLANE).astype(float)


def plane_of(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a plane of decisions: all examples, and a margin of a tenth."""
    low, high = X.min(axis=0), X.max(axis=0)
    return low - (high - low) / 10, high + (high - low) / 10


def _concepts(study: Study, prepared: dict[str, Prepared]) -> dict[str, Any]:
    """What boosting makes of all examples of each data set: that of the first cell."""
    found: dict[str, Any] = {}
    for cell in study.cells():
        if cell.name == "boosting" and cell.data not in found:
            one = prepared[cell.data]
            task = Task(cell, one.domain, len(one.data.y), cell.random(study.key, 0))
            model = made(task).fit(one.data.X, one.data.y)
            named = zip(model.attributes_, one.data.names, strict=True)
            model.attributes_ = [replace(attribute, name=name) for attribute, name in named]
            terms = [term._asdict() for term in model.terms_]
            found[cell.data] = {"text": model.concept_, "classes": model.classes_.tolist(), "terms": terms}
    return found
