"""Learning curves predicted from real tables, beside fits to examples of them: how far theory is from the truth.

    python benchmarks/real_tables.py              # every table; a minute on one core
    python benchmarks/real_tables.py --sets 20    # fewer fits at each number of examples
    python benchmarks/real_tables.py --tiny       # at toy size: tests that it runs, not what it finds

`statmech.predict_learning_curve` predicts the error on fresh rows from the table alone; each fit learns P of its rows,
drawn without replacement, and is tested on the others. "Error": the standard error of the mean over fits, which share
rows of one table, so that it leaves out how far the table is from its population.

Diabetes, the digits of 8 x 8 pixels and breast cancer come with scikit-learn; MNIST and the splice junctions are read
from the folder STATMECH_DATA. Splice junctions are an indicator of A, C and G at each of 60 places, and the label says
whether there is a junction; columns of the digits and of breast cancer are standardised, unless they are raw.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import timing

import statmech
from statmech import data_sets

Rows = tuple[np.ndarray, np.ndarray]
SETS = 100
FEWEST, MOST = 5, 0.95  # examples of a fit, the latter of the rows


class Table(NamedTuple):
    """How a table is made, and whether it is of scikit-learn or in the folder of data."""

    made: Callable[[], Rows]
    ships: bool = True


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1; those that do not vary are left out."""
    varying = X[:, np.ptp(X, axis=0) > 0]
    return (varying - varying.mean(axis=0)) / varying.std(axis=0)


def diabetes() -> Rows:
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True)


def cancer() -> Rows:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return standardised(X), y


def digits(*, raw: bool = False) -> Rows:
    """Digits of 8 x 8 pixels, odd or even."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X if raw else standardised(X), y % 2


def threes_and_eights() -> Rows:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    some = np.isin(y, (3, 8))
    return standardised(X[some]), y[some]


def mnist(name: str = "digits") -> Rows:
    """MNIST, odd or even, or two digits."""
    data = data_sets.cached_data(name)
    digit = data.y.astype(int)
    return data.X, digit % 2 if name == "digits" else digit


def splice() -> Rows:
    data = data_sets.cached_data("splice")
    return np.concatenate([base == data.X for base in "acg"], axis=1).astype(float), data.y != "N"


TABLES = {
    "diabetes": Table(diabetes),
    "digits odd/even": Table(digits),
    "digits odd/even, raw": Table(lambda: digits(raw=True)),
    "digits 3/8": Table(threes_and_eights),
    "breast cancer": Table(cancer),
    "MNIST odd/even": Table(mnist, ships=False),
    "MNIST 3/8": Table(lambda: mnist("digits-3-8"), ships=False),
    "splice": Table(splice, ships=False),
}
SQUARED = ("diabetes", "digits odd/even", "digits 3/8", "breast cancer", "MNIST odd/even", "splice")
LABELS = {
    "MNIST odd/even": (166, 663, 1989),
    "splice": (90, 360, 1440),
    "digits odd/even, raw": (30, 122, 488),
    "digits odd/even": (30, 122, 488),
    "MNIST 3/8": (55, 165, 549),
    "breast cancer": (30, 120, 300),
}


@cache
def rows_of(name: str) -> Rows:
    return TABLES[name].made()


def available(names: Sequence[str]) -> list[str]:
    """The tables that are here, and a sentence if some are not."""
    here = [name for name in names if TABLES[name].ships or os.environ.get(data_sets.FOLDER)]
    if len(here) < len(names):
        others = ", ".join(name for name in names if name not in here)
        print(f"\nLeft out: {others}. They are read from the folder {data_sets.FOLDER}, which is not set.")
    return here


def squared_rows(name: str, sets: int) -> list[list[object]]:
    """Ridge regression, from a quarter as many examples as columns to 16 times as many."""
    X, y = rows_of(name)
    n, N = len(X), int(np.sum(np.ptp(X, axis=0) > 0))
    P = [round(ratio * N) for ratio in (0.25, 1, 4, 16) if FEWEST < ratio * N < MOST * n]
    curve = statmech.predict_learning_curve(X, y, loss="square", lam=0.1, P=P, check=sets, numbers=True)
    size = np.var(y.astype(float))
    values = (curve[part].values / size for part in ("mse", "mse_fit", "mse_fit_error"))
    return lines(f"{name}, {n:,} x {N}", P, *values)


def label_rows(name: str, loss: str, lam: float, sets: int) -> list[list[object]]:
    """The fraction of wrong labels."""
    X, y = rows_of(name)
    curve = statmech.predict_learning_curve(X, y, loss=loss, lam=lam, P=LABELS[name], check=sets)
    values = (curve[part].values for part in ("eps_y", "eps_y_fit", "eps_y_fit_error"))
    return lines(name, curve.P.values, *values)


def lines(name: str, P: Sequence[int], theory: np.ndarray, fits: np.ndarray, error: np.ndarray) -> list[list[object]]:
    """A line of the table for each number of examples."""
    found = zip(P, theory, fits, error, strict=True)
    return [[name, p, f"{t:.4f}", f"{f:.4f}", f"{e:.4f}", f"{100 * (f / t - 1):+.1f}"] for p, t, f, e in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=SETS, help=f"fits at each number of examples ({SETS})")
    parser.add_argument("--tiny", action="store_true", help="toy size")
    options = parser.parse_args()
    timing.pin()
    print(timing.machine())
    sets, start = 2 if options.tiny else options.sets, time.process_time()
    print(f"{sets} fits at each number of examples")
    squared, labels = (("digits 3/8",), ("breast cancer",)) if options.tiny else (SQUARED, tuple(LABELS))
    header = ["table", "P", "theory", "fits", "error", "fits/theory - 1, %"]
    rows = [row for name in available(squared) for row in squared_rows(name, sets)]
    timing.table("Ridge regression, lam = 0.1: squared error over the variance of the target", header, rows)
    for loss, lam in (("square", 1.0), ("logistic", 0.1)):
        rows = [row for name in available(labels) for row in label_rows(name, loss, lam, sets)]
        timing.table(f"Loss {loss}, lam = {lam:g}: fraction of wrong labels", header, rows)
    print(f"\n{time.process_time() - start:.0f} s of CPU")


if __name__ == "__main__":
    main()
