r"""The learning curve of a table of real data: the error on fresh rows, from the table alone.

Theory of learners with an l2 penalty (`theory.tables`) takes two classes as two clusters of one covariance, and a
squared error by the covariances of inputs and target. The covariance of the population, which is not that of its
sample, follows from the resolvent of the rows; nothing is fitted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from statmech.convex.losses import LOSSES, OF_DESCENT, Loss
from statmech.errors import ConfigError, not_known
from statmech.labelled_table import labelled
from statmech.real_table import RealTable, real_table
from statmech.table_diagnosis import diagnosis

if TYPE_CHECKING:
    import xarray as xr

    from theory.tables.fresh_rows import FreshRows

CITES = ("golub1979", "jacot2020", "wei2022", "misiakiewicz2024")  # papers, by their keys in the bibliography
CITES_OF_LABELS = ("mignacco2020", "loureiro2021mixtures")
BEST = "best"
HALVES = 4  # doublings of the number of examples on both sides of the rows, by default
SETS = 20
PENALTY_LIMIT = (
    "with {:,} examples or more the rows do not determine the error at the best penalty; the weakest penalty at which "
    "they do is taken, and the best error can be smaller"
)


def predict_learning_curve(
    X: object,
    y: object,
    *,
    loss: str = "logistic",
    lam: float | str = 0.1,
    P: Sequence[int] | None = None,
    check: bool | int = False,
    key: int = 0,
    labels: tuple[str, str] | None = None,
    numbers: bool = False,
) -> xr.Dataset:
    r"""Predict the error of a linear learner without an intercept on fresh rows at each number of examples P.

    The learner minimises :math:`\sum_\mu\ell(y^\mu h^\mu) + \tfrac\lambda2|\mathbf w|^2`,
    :math:`h = \mathbf w\cdot\mathbf x`, of P rows drawn without replacement. Columns are centred, and rows divided by
    one number so that the mean of :math:`|\mathbf x|^2` is 1.

    Parameters
    ----------
    X : array (n, N)
        Rows of numbers; columns that do not vary are left out.
    y : array (n,)
        A target of two values, or of numbers with the loss "square".
    loss
        One of `statmech.LOSSES`.
    lam
        Strength of the penalty, above 0, or "best" for that of the smallest error at each P.
    P
        Numbers of examples; by default from n/16 to 16 n.
    check
        Whether to fit as well: `True` for 20 sets of examples, or their number.
    key
        Of the random numbers of these sets.
    labels
        What the labels +1 and -1 are called, where y is already +1 and -1.
    numbers
        Whether a target of two values is a number, whose squared error is predicted.

    Returns
    -------
    xarray.Dataset
        Along P: `eps_y`, the fraction of wrong labels, or `mse`, the mean squared error of a target with its noise;
        `lam`; with `check` also `eps_y_fit` or `mse_fit`, means over sets of the error on the rows that were not
        examples, and their standard errors `..._fit_error`. NaN where the table does not determine the error.
        Attributes: the diagnosis, `warnings`, one sentence per line, and `cites`, keys of papers
        (`statmech.results.citations.bibtex`); where some errors are not determined also `most_examples`, up to which
        they are.

    Raises
    ------
    ConfigError
        For a table, a loss or numbers that are not possible.

    Notes
    -----
    Generalised cross-validation (Golub, Heath & Wahba 1979) moved from n rows to P (Jacot et al. 2020; Wei, Hu &
    Steinhardt 2022; Misiakiewicz & Saeed 2024); for classes the equations of
    Mignacco et al. (2020) and Loureiro et al. (2021) with the resolvent in place of the population's covariance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(np.arange(400) % 2, 1, -1)
    >>> X = rng.standard_normal((400, 40)) + 0.25 * y[:, None]
    >>> predict_learning_curve(X, y, P=[40, 80, 160]).eps_y.values.round(3)
    array([0.12 , 0.107, 0.099])
    """
    return curve_of(prepared(X, y, loss, labels, numbers), lam=lam, P=P, check=check, key=key)


class Prepared(NamedTuple):
    """A table whose curve is to be predicted, what theory knows of its rows, a loss, and what describes both."""

    table: RealTable
    rows: FreshRows
    loss: Loss
    attributes: dict[str, Any]

    def strengths(self, P: np.ndarray, lam: float | str) -> np.ndarray:
        """Return the strengths of the penalty at each number of examples."""
        return self.rows.best_penalties(self.loss, P) if lam == BEST else np.full(len(P), lam, float)

    def errors(self, P: np.ndarray, strengths: np.ndarray) -> np.ndarray:
        """Predict the error at each number of examples; NaN where the table does not determine it."""
        state = self.rows.described(self.loss, P, strengths)
        return state.eps_y if self.table.labels else state.mse_y

    def most_examples(self, beyond: int, lam: float | str) -> int:
        """Find the largest number of examples with a known error, below one whose error is not known."""

        def is_unknown(P: int) -> bool:
            return bool(np.isnan(self.errors(np.array([P]), self.strengths(np.array([P]), lam))[0]))

        return 1 + bisect_left(range(2, beyond), True, key=is_unknown)

    def limits(self, P: np.ndarray, lam: float | str, strengths: np.ndarray, errors: np.ndarray) -> dict[str, Any]:
        """Return `most_examples` and a warning where the table determines no error, or none at the best penalty."""
        found: dict[str, Any] = {}
        if np.isnan(errors).any():
            found["most_examples"] = self.most_examples(P[np.isnan(errors)][0], lam)
        if lam == BEST and not self.table.labels:  # that of labels is never the weakest one of a known error
            limited = np.isnan(self.errors(P, strengths / 2)) & np.isfinite(errors)
            if limited.any():
                warnings = [self.attributes["warnings"], PENALTY_LIMIT.format(P[limited][0])]
                found["warnings"] = "\n".join(filter(None, warnings))
        return found


def prepared(
    X: object, y: object, loss: str = "logistic", labels: tuple[str, str] | None = None, numbers: bool = False
) -> Prepared:
    """A table with all that its curve needs at any number of examples.

    Parameters
    ----------
    X, y, loss, labels, numbers
        As of `predict_learning_curve`.
    """
    from theory.tables.fresh_rows import FreshRows

    table = real_table(labelled(X, y, numbers=numbers))
    kind = _loss(loss, table)
    attributes = {
        "loss": loss,
        "target": " and ".join(labels) if labels else table.kind,
        **diagnosis(table),
        "cites": [*CITES, *(CITES_OF_LABELS if table.labels else ())],
    }
    return Prepared(table, FreshRows(table), kind, attributes)


def curve_of(
    given: Prepared,
    *,
    lam: float | str = 0.1,
    P: Sequence[int] | None = None,
    check: bool | int = False,
    key: int = 0,
) -> xr.Dataset:
    """Predict the learning curve of a table that is prepared, at any number of examples.

    Parameters
    ----------
    given
        What `prepared` returns.
    lam, P, check, key
        As of `predict_learning_curve`.
    """
    import xarray as xr

    table, loss, examples = given.table, given.loss, _examples(P, len(given.table.y))
    if not (lam == BEST or (isinstance(lam, int | float) and not isinstance(lam, bool) and 0 < lam < np.inf)):
        raise ConfigError(f"lam must be a number above 0, or {BEST}, not {lam!r}")
    name, strengths = "eps_y" if table.labels else "mse", given.strengths(examples, lam)
    error = given.errors(examples, strengths)
    values: dict[str, Any] = {name: ("P", error), "lam": ("P", strengths)}
    if check:
        sets = SETS if check is True else int(check)
        mean, deviation = _fitted(table, loss, strengths, examples, sets, key)
        values |= {f"{name}_fit": ("P", mean), f"{name}_fit_error": ("P", deviation)}
    limits = given.limits(examples, lam, strengths, error)
    return xr.Dataset(values, {"P": examples}, given.attributes | limits)


def _loss(name: str, table: RealTable) -> Loss:
    """The loss, for a target that it can have."""
    if name not in LOSSES or name in OF_DESCENT:
        raise ConfigError(f"loss: {not_known(name, 'a loss', [it for it in LOSSES if it not in OF_DESCENT])}")
    kind = LOSSES[name]()
    if table.labels is None and name != "square":
        raise ConfigError(f"the target is a number: the loss must be square, not {name}")
    return kind


def _examples(P: Sequence[int] | None, n: int) -> np.ndarray:
    if P is None:
        return np.unique(np.rint(n * 2.0 ** np.arange(-HALVES, HALVES + 1))).astype(int)
    examples = np.unique(np.atleast_1d(np.asarray(P)))
    if examples.dtype.kind not in "iu" or examples.size == 0 or examples[0] < 2:
        raise ConfigError(f"P must be whole numbers of examples, 2 or more, not {P!r}")
    return examples


def _fitted(
    table: RealTable, loss: Loss, lam: np.ndarray, P: np.ndarray, sets: int, key: int
) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard error of fits on the rows that were not examples; NaN from P = n on."""
    mean, deviation = np.full((2, len(P)), np.nan)
    for at, (examples, strength) in enumerate(zip(P.tolist(), lam.tolist(), strict=True)):
        if examples < len(table.Z) and np.isfinite(strength):
            errors = [_fit(table, loss, strength, examples, [key, examples, one]) for one in range(sets)]
            mean[at], deviation[at] = np.mean(errors), np.std(errors, ddof=1) / np.sqrt(sets) if sets > 1 else np.nan
    return mean, deviation


def _fit(table: RealTable, loss: Loss, lam: float, P: int, seed: list[int]) -> float:
    """The error on the other rows of one fit."""
    from simulate.kernels.table_fits import errors_on, problem_of
    from simulate.minimisers.method import minimise

    order = np.random.default_rng(seed).permutation(len(table.Z))
    errors = errors_on(table, minimise(problem_of(table, loss, lam, order[:P])).w, order[P:])
    return errors.labels if table.labels else errors.squares


def described(curve: xr.Dataset) -> str:
    """The diagnosis, the table, and the verdict: how much more examples would help.

    Parameters
    ----------
    curve
        What `predict_learning_curve` returns.
    """
    name = "eps_y" if "eps_y" in curve else "mse"
    about = curve.attrs
    left_out = f" ({about['constant_columns']} constant ones left out)" if about["constant_columns"] else ""
    lines = [
        f"{about['rows']:,} rows, {about['columns']:,} columns{left_out}; target: {about['target']}",
        f"R2 of least squares {_R2_text(about['R2'], name)}; effectively {about['directions']:.3g} directions",
        *(f"warning: {sentence}" for sentence in about["warnings"].splitlines()),
        "",
        f"{'examples':>10}  {'lam':>9}  {name + ', predicted':>16}" + ("  fits" if f"{name}_fit" in curve else ""),
    ]
    for at in range(curve.sizes["P"]):
        one = curve.isel(P=at)
        predicted = f"{float(one[name]):.4f}" if np.isfinite(one[name]) else "not determined"
        line = f"{int(one.P):>10,}  {float(one.lam):>9.3g}  {predicted:>16}"
        if f"{name}_fit" in curve and np.isfinite(one[f"{name}_fit"]):
            line += f"  {float(one[f'{name}_fit']):.4f} +- {float(one[f'{name}_fit_error']):.4f}"
        lines.append(line)
    return "\n".join([*lines, "", _verdict(curve, name)])


def _R2_text(R2: float, name: str) -> str:
    if np.isnan(R2):
        return "not determined"
    above = ", above 2/pi, where no linear teacher has such labels" if 2 / np.pi < R2 else ", below 2/pi"
    return f"{R2:.3f}{above if name == 'eps_y' else ''}"


def _verdict(curve: xr.Dataset, name: str) -> str:
    rows, known, most = curve.attrs["rows"], curve.dropna("P", subset=[name]), curve.attrs.get("most_examples")
    beyond = f" with more than {most:,} examples" if most and most > 1 else ""
    limit = f" The {rows:,} rows do not determine {name}{beyond}." if most else ""
    if not known.sizes["P"]:
        return limit.strip()
    at, last = known.sel(P=rows, method="nearest"), known.isel(P=-1)
    if last.P <= at.P:
        return f"With {int(at.P):,} examples {name} is {float(at[name]):.4f}.{limit}"
    gain = 1 - float(last[name]) / float(at[name])
    return (
        f"With {int(at.P):,} examples {name} is {float(at[name]):.4f}; {float(last.P / at.P):.3g} times as many would "
        f"take it to {float(last[name]):.4f}, {100 * abs(gain):.0f} % {'lower' if gain >= 0 else 'higher'}.{limit}"
    )
