"""Simulation of cross-validation: every classifier on every data set, for each fold of each shuffle."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from simulate.classification.estimators.classifier_models import (
    TrainingDataProperties,
    count_evaluated_features,
    count_nonzero_weights,
    count_pair_weights,
    encode_as_numbers,
    get_attribute_categories,
    make_model,
    sum_pair_weights,
)
from simulate.execution import work_units
from statmech.classification.classifiers import Classifier
from statmech.classification.cross_validation import DECISION_MAP_POINTS_PER_SIDE, Study, StudyCell
from statmech.errors import ScenarioError
from statmech.inputs import data_sets
from statmech.inputs.data_sets import DataSetContent
from statmech.keys.sweep_grid import ensure_tuple, hash_identity


class EncodedDataSet(NamedTuple):
    """A data set, with a numerical copy for the classifiers that require numbers."""

    data: DataSetContent
    numbers: np.ndarray
    attribute_categories: Any

    def inputs(self, classifier: Classifier) -> np.ndarray:
        """Return the inputs of a classifier: attributes if it is symbolic, otherwise numbers."""
        return self.data.X if classifier.uses_raw_attributes else self.numbers


class Fold(NamedTuple):
    """One fold of a cell and a shuffle, with its training examples (`inside`) and test examples (`outside`)."""

    cell: StudyCell
    seed: int
    training_rows: np.ndarray
    test_rows: np.ndarray


class Simulator(work_units.PerRunSimulator[StudyCell]):
    """Simulator of cross-validation: every classifier on every data set, for each fold of each shuffle."""

    source = "cross-validation on data"
    scenario: Study

    def open_context(self) -> AbstractContextManager[None]:
        """Return a context that ignores convergence warnings, which inseparable data cause."""
        return _ignore_convergence_warnings()

    def check_resources(self) -> None:
        """Raise an error if data cannot be loaded (`ConfigError`) or have too few examples for the folds."""
        for name in ensure_tuple(self.scenario.data):
            _split_folds(self.scenario, name, load_encoded_data_set(name).data, 0)

    def make_extra_attributes(self) -> dict[str, str]:
        """Return notes on the data, and the concepts that boosting learns from all examples, as JSON."""
        notes = {name: data_sets.find_data_source(name).note for name in ensure_tuple(self.scenario.data)}
        with self.open_context():
            return {"concepts": json.dumps(_learn_concepts(self.scenario)), "notes": json.dumps(notes)}

    def simulate(self, cell: StudyCell, seed: int) -> dict[str, np.ndarray]:
        """Return the variables (folds,) of a cell and shuffle, with the decisions on a plane if requested."""
        fold_values = [evaluate_fold(self.scenario, fold) for fold in make_folds(self.scenario, cell, seed)]
        values = {name: np.array([fold_value[name] for fold_value in fold_values]) for name in fold_values[0]}
        return values | (
            {"decision": _predict_plane_decisions(self.scenario, cell, seed)} if self.scenario.plane else {}
        )


@contextmanager
def _ignore_convergence_warnings() -> Iterator[None]:
    """Ignore scikit-learn's warnings that a fold's model has not converged."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def make_folds(study: Study, cell: StudyCell, seed: int) -> list[Fold]:
    """Return every fold of a shuffle. The folds are the same for all classifiers."""
    random = hash_identity({"folds": study.folds, "data": cell.data, "key": study.key, "seed": seed})[0]
    parts = _split_folds(study, cell.data, load_encoded_data_set(cell.data).data, random)
    return [Fold(cell, seed, inside, outside) for inside, outside in parts]


def evaluate_fold(study: Study, fold: Fold) -> dict[str, Any]:
    """Fit the classifier of one fold and return its variables."""
    model, X, y = fit_fold(study, fold)
    inside, outside = fold.training_rows, fold.test_rows
    values = {
        "accuracy": np.mean(model.predict(X[outside]) == y[outside]),
        "accuracy_training": np.mean(model.predict(X[inside]) == y[inside]),
        "nonzero_weights": count_nonzero_weights(model),
        "passes_made": np.max(model.n_iter_) if "passes" in vars(fold.cell.classifier) else np.nan,
    }
    codons = data_sets.find_data_source(fold.cell.data).codons
    values |= {**count_evaluated_features(model, X[outside]), **count_pair_weights(model, codons)}
    return values | (
        {"pair_weights": sum_pair_weights(model, len(study.recorded_coordinates["position"]))}
        if study.positions
        else {}
    )


def fit_fold(study: Study, fold: Fold) -> tuple[Any, np.ndarray, np.ndarray]:
    """Fit the classifier of one fold and return it with the inputs and classes of all examples."""
    prepared_data = load_encoded_data_set(fold.cell.data)
    X, y = prepared_data.inputs(fold.cell.classifier), prepared_data.data.y
    inside = _order_training_examples(fold, y)
    random = fold.cell.random(study.key, fold.seed)
    return (
        make_model(
            fold.cell.classifier, TrainingDataProperties(prepared_data.attribute_categories, inside.size, random)
        ).fit(X[inside], y[inside]),
        X,
        y,
    )


@cache
def _load_and_encode_version(name: str, version: tuple[object, ...]) -> EncodedDataSet:
    """Load and encode one version of a data set, once per process."""
    data = data_sets.get_cached_data_set(name)
    return EncodedDataSet(data, encode_as_numbers(data), get_attribute_categories(data))


def load_encoded_data_set(name: str) -> EncodedDataSet:
    """Return a data set with its encodings, loaded once per version."""
    return _load_and_encode_version(name, data_sets.get_data_file_version(name))


def _split_folds(
    study: Study, name: str, data: DataSetContent, random_seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split a data set into folds, each a pair of training and test indices."""
    from sklearn.model_selection import StratifiedKFold

    examples = np.random.default_rng(random_seed).permutation(data.y.size)[: study.examples]
    examples.sort()
    if data.folds is not None:
        test_masks = [data.folds[examples] == fold for fold in np.unique(data.folds)]
        return [(examples[~outside], examples[outside]) for outside in test_masks]
    min_examples = np.unique(data.y[examples], return_counts=True)[1].min()
    if min_examples < study.folds:
        message = f"{study.folds} folds are more than the {min_examples} examples of a class of {name}"
        raise ScenarioError([(("folds",), message)])
    cut = StratifiedKFold(study.folds, shuffle=True, random_state=random_seed).split(examples, data.y[examples])
    return [(examples[inside], examples[outside]) for inside, outside in cut]


def _order_training_examples(fold: Fold, y: np.ndarray) -> np.ndarray:
    """Return the training examples, sorted by class if the classifier requests this order."""
    by_class = getattr(fold.cell.classifier, "order", None) == "by-class"
    return fold.training_rows[np.argsort(y[fold.training_rows], kind="stable")] if by_class else fold.training_rows


def _predict_plane_decisions(study: Study, cell: StudyCell, seed: int) -> np.ndarray:
    """Return a fold's decisions on a plane, 1 for the second class. Rows are values of the second attribute."""
    grid = make_plane_grid(load_encoded_data_set(cell.data).data.X)
    model, scale = fit_plane_model(study, cell, seed)
    is_second_class = model.predict(grid / scale) == model.classes_[-1]
    return is_second_class.reshape(DECISION_MAP_POINTS_PER_SIDE, DECISION_MAP_POINTS_PER_SIDE).astype(float)


def fit_plane_model(study: Study, cell: StudyCell, seed: int) -> tuple[Any, float]:
    """Fit the model for the plane of decisions and return it with the scale of the attributes."""
    prepared_data = load_encoded_data_set(cell.data)
    X, y = prepared_data.data.X, prepared_data.data.y
    scale = float(np.abs(X).max())
    return make_model(
        cell.classifier,
        TrainingDataProperties(prepared_data.attribute_categories, len(y), cell.random(study.key, seed)),
    ).fit(X / scale, y), scale


def get_plane_weights(
    study: Study, cell: StudyCell, seed: int, decision: np.ndarray
) -> tuple[np.ndarray, float] | None:
    """Return the weights (2,) and the bias of a fold's model on the plane, in units of the attributes.

    The result is None if the classifier has no weights, or if the recorded `decision` is not the sign of w.x + b.
    """
    model, scale = fit_plane_model(study, cell, seed)
    if not hasattr(model, "coef_"):
        return None
    w, b = model.coef_[0] / scale, float(model.intercept_[0])
    side = make_plane_grid(load_encoded_data_set(cell.data).data.X) @ w + b > 0
    return (
        (w, b)
        if np.array_equal(side.reshape(DECISION_MAP_POINTS_PER_SIDE, DECISION_MAP_POINTS_PER_SIDE), decision > 0)
        else None
    )


def make_plane_grid(X: np.ndarray) -> np.ndarray:
    """Return the points (n, 2) of the recorded decisions, with the first attribute varying fastest."""
    low, high = compute_plane_corners(X)
    first, second = (np.linspace(low[i], high[i], DECISION_MAP_POINTS_PER_SIDE) for i in range(2))
    return np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)


def compute_plane_corners(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the plane of decisions: the range of the examples, extended by a tenth."""
    low, high = X.min(axis=0), X.max(axis=0)
    return low - (high - low) / 10, high + (high - low) / 10


def _learn_concepts(study: Study) -> dict[str, Any]:
    """Return the concept that the first cell of each of a study's data sets learns from all examples."""
    concepts: dict[str, Any] = {}
    for cell in study.cells():
        if cell.classifier.uses_raw_attributes and cell.data not in concepts:
            prepared_data = load_encoded_data_set(cell.data)
            task = TrainingDataProperties(
                prepared_data.attribute_categories, len(prepared_data.data.y), cell.random(study.key, 0)
            )
            model = make_model(cell.classifier, task).fit(prepared_data.data.X, prepared_data.data.y)
            named_attributes = zip(model.attributes_, prepared_data.data.names, strict=True)
            model.attributes_ = [replace(attribute, name=name) for attribute, name in named_attributes]
            terms = [term._asdict() for term in model.terms_]
            concepts[cell.data] = {"text": model.concept_, "classes": model.classes_.tolist(), "terms": terms}
    return concepts
