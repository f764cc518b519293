"""Simulates a cross-validation: every classifier on every data set, each held-out fold of each shuffle."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from simulate.estimators.classifiers import ModelTask, domain, features, make, numbers, pair_weights, pairs, weights
from simulate.execution import units
from statmech import data_sets as sources
from statmech.classifiers import Classifier
from statmech.data_sets import Data
from statmech.errors import ScenarioError
from statmech.scenarios.axes import points
from statmech.scenarios.cells import words_of
from statmech.scenarios.cross_validation import PLANE, Study, StudyCell


class Prepared(NamedTuple):
    """A data set, and the same in numbers for the classifiers that need them."""

    data: Data
    numbers: np.ndarray
    domain: Any

    def inputs(self, classifier: Classifier) -> np.ndarray:
        """The inputs of a classifier: attributes if it is symbolic, else numbers."""
        return self.data.X if classifier.symbolic else self.numbers


class Fold(NamedTuple):
    """A cell, a shuffle, and the examples inside and outside of one of its folds."""

    cell: StudyCell
    seed: int
    inside: np.ndarray
    outside: np.ndarray


class Simulator(units.RunByRun[StudyCell]):
    """Cross-validation: every classifier on every data set, each held-out fold of each shuffle."""

    source = "cross-validation on data"
    scenario: Study

    def context(self) -> AbstractContextManager[None]:
        """Without warnings for perceptrons of data that no perceptron classifies without errors."""
        return _without_warnings()

    def check(self) -> None:
        """Refuse data that cannot be loaded (`ConfigError`), or too few for the folds."""
        for name in points(self.scenario.data):
            _parts(self.scenario, name, prepared(name).data, 0)

    def attrs(self) -> dict[str, str]:
        """Notes on the data, and the concepts that boosting makes of all of them, as JSON."""
        notes = {name: sources.source(name).note for name in points(self.scenario.data)}
        with self.context():
            return {"concepts": json.dumps(_concepts(self.scenario)), "notes": json.dumps(notes)}

    def simulate(self, cell: StudyCell, seed: int) -> dict[str, np.ndarray]:
        """The variables (folds,) of a cell and shuffle, and the plane of decisions if asked for."""
        judged = [judge(self.scenario, fold) for fold in folds(self.scenario, cell, seed)]
        values = {name: np.array([one[name] for one in judged]) for name in judged[0]}
        return values | ({"decision": _plane(self.scenario, cell, seed)} if self.scenario.plane else {})


@contextmanager
def _without_warnings() -> Iterator[None]:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def folds(study: Study, cell: StudyCell, seed: int) -> list[Fold]:
    """Every fold of a shuffle; the same for all classifiers."""
    random = words_of({"folds": study.folds, "data": cell.data, "key": study.key, "seed": seed})[0]
    parts = _parts(study, cell.data, prepared(cell.data).data, random)
    return [Fold(cell, seed, inside, outside) for inside, outside in parts]


def judge(study: Study, fold: Fold) -> dict[str, Any]:
    """The variables of one fold's classifier."""
    model, X, y = fitted(study, fold)
    inside, outside = fold.inside, fold.outside
    found = {
        "accuracy": np.mean(model.predict(X[outside]) == y[outside]),
        "accuracy_training": np.mean(model.predict(X[inside]) == y[inside]),
        "nonzero_weights": weights(model),
        "passes_made": np.max(model.n_iter_) if "passes" in vars(fold.cell.classifier) else np.nan,
    }
    codons = sources.source(fold.cell.data).codons
    found |= {**features(model, X[outside]), **pairs(model, codons)}
    return found | ({"pair_weights": pair_weights(model, len(study.recorded["position"]))} if study.positions else {})


def fitted(study: Study, fold: Fold) -> tuple[Any, np.ndarray, np.ndarray]:
    """One fold's classifier, fitted, and the inputs and classes of all examples."""
    have = prepared(fold.cell.data)
    X, y = have.inputs(fold.cell.classifier), have.data.y
    inside = _visited(fold, y)
    random = fold.cell.random(study.key, fold.seed)
    return make(fold.cell.classifier, ModelTask(have.domain, inside.size, random)).fit(X[inside], y[inside]), X, y


@cache
def _kept(name: str, version: tuple[object, ...]) -> Prepared:
    data = sources.cached_data(name)
    return Prepared(data, numbers(data), domain(data))


def prepared(name: str) -> Prepared:
    """A data set, loaded once."""
    return _kept(name, sources.version(name))


def _parts(study: Study, name: str, data: Data, random: int) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedKFold

    every = np.random.default_rng(random).permutation(data.y.size)[: study.examples]
    every.sort()
    if data.folds is not None:
        held = [data.folds[every] == fold for fold in np.unique(data.folds)]
        return [(every[~outside], every[outside]) for outside in held]
    fewest = np.unique(data.y[every], return_counts=True)[1].min()
    if fewest < study.folds:
        many = f"{study.folds} folds are more than the {fewest} examples of a class of {name}"
        raise ScenarioError([(("folds",), many)])
    cut = StratifiedKFold(study.folds, shuffle=True, random_state=random).split(every, data.y[every])
    return [(every[inside], every[outside]) for inside, outside in cut]


def _visited(fold: Fold, y: np.ndarray) -> np.ndarray:
    """The examples to learn from, in the order in which they stand."""
    by_class = getattr(fold.cell.classifier, "order", None) == "by-class"
    return fold.inside[np.argsort(y[fold.inside], kind="stable")] if by_class else fold.inside


def _plane(study: Study, cell: StudyCell, seed: int) -> np.ndarray:
    """True where the second class is chosen, learnt from all examples; rows of the plane are the second attribute."""
    grid = grid_of(prepared(cell.data).data.X)
    model, scale = plane_model(study, cell, seed)
    chosen = model.predict(grid / scale) == model.classes_[-1]
    return chosen.reshape(PLANE, PLANE).astype(float)


def plane_model(study: Study, cell: StudyCell, seed: int) -> tuple[Any, float]:
    """The model whose decisions are recorded on the plane, and the size by which it divides all attributes."""
    have = prepared(cell.data)
    X, y = have.data.X, have.data.y
    scale = float(np.abs(X).max())
    return make(cell.classifier, ModelTask(have.domain, len(y), cell.random(study.key, seed))).fit(X / scale, y), scale


def weights_of_plane(study: Study, cell: StudyCell, seed: int, decision: np.ndarray) -> tuple[np.ndarray, float] | None:
    """The weights (2,) and the bias, in units of the attributes, of the model on the plane.

    None if the classifier has none, or if `decision`, as recorded, is not the sign of w.x + b at every point.
    """
    model, scale = plane_model(study, cell, seed)
    if not hasattr(model, "coef_"):
        return None
    w, b = model.coef_[0] / scale, float(model.intercept_[0])
    side = grid_of(prepared(cell.data).data.X) @ w + b > 0
    return (w, b) if np.array_equal(side.reshape(PLANE, PLANE), decision > 0) else None


def grid_of(X: np.ndarray) -> np.ndarray:
    """The points (PLANE * PLANE, 2) at which decisions are recorded, the first attribute fastest."""
    low, high = plane_of(X)
    one, other = (np.linspace(low[i], high[i], PLANE) for i in range(2))
    return np.stack(np.meshgrid(one, other), axis=-1).reshape(-1, 2)


def plane_of(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a plane of decisions: all examples, with a margin of a tenth."""
    low, high = X.min(axis=0), X.max(axis=0)
    return low - (high - low) / 10, high + (high - low) / 10


def _concepts(study: Study) -> dict[str, Any]:
    """The concept that boosting makes of all examples of each data set: that of the first cell."""
    found: dict[str, Any] = {}
    for cell in study.cells():
        if cell.classifier.symbolic and cell.data not in found:
            one = prepared(cell.data)
            task = ModelTask(one.domain, len(one.data.y), cell.random(study.key, 0))
            model = make(cell.classifier, task).fit(one.data.X, one.data.y)
            named = zip(model.attributes_, one.data.names, strict=True)
            model.attributes_ = [replace(attribute, name=name) for attribute, name in named]
            terms = [term._asdict() for term in model.terms_]
            found[cell.data] = {"text": model.concept_, "classes": model.classes_.tolist(), "terms": terms}
    return found
