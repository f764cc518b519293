r"""The learning curve of a table of real data: the error on fresh rows at any number of examples.

The theory of learners with an l2 penalty (`theory.convex`) models two classes as two clusters of equal covariance, and
determines a squared error by the covariances of inputs and target. The resolvent of the rows gives the covariance of
the population. Real classes are not Gaussian clusters. Therefore the error of theory is measured, by fits at two
numbers of examples and by the leave-one-out errors of all rows, and the curve of theory is shifted to these
measurements (`theory.convex.anchored_curves`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from statmech.convex.losses import DESCENT_ONLY_LOSSES, LOSSES, Loss
from statmech.errors import ConfigError, format_option, format_unknown_name
from statmech.inputs import table_columns, table_files
from statmech.inputs.real_tables import (
    LabelledTable,
    RealTable,
    diagnose_table,
    make_labelled_table,
    make_real_table,
    read_labelled_table,
)
from statmech.inputs.table_columns import NO_INDEX_COLUMN_KEYWORD, ColumnOptions
from statmech.inputs.table_files import TableFileFormat

if TYPE_CHECKING:
    import xarray as xr

    from theory.convex.anchored_curves import ErrorScale, MeasuredErrors, PredictedCurve
    from theory.convex.real_tables import FreshRowErrorPredictor

LEARNING_CURVE_CITATION_KEYS = (
    "golub1979",
    "jacot2020",
    "wei2022",
    "misiakiewicz2024",
)  # bibliography keys of the papers
CLASSIFICATION_CITATION_KEYS = ("mignacco2020", "loureiro2021mixtures")
BEST_PENALTY_KEYWORD = "best"
MIN_EXAMPLES_PER_ROW, MAX_EXAMPLES_PER_ROW = 1 / 16, 4  # examples per row: error bands have been tested up to 4
PENALTY_GRIDS = {True: np.geomspace(1e-4, 1e2, 7), False: np.geomspace(1e-6, 1e4, 11)}  # True: labels
MIN_SPLINE_KNOTS, NUM_PENALTY_SEARCH_POINTS = 4, 481
MIN_FIT_SETS, MAX_FIT_SETS = 6, 20  # random sets of examples at each of two sizes
FIT_BUDGET_SECONDS = 1.8  # on one core, for the fits at both sizes
MIN_FIT_EXAMPLES = 8
DEFAULT_NUM_CHECK_SETS = 20


def predict_learning_curve(
    X: object,
    y: object = "-1",
    *,
    loss: str | None = None,
    lam: float | str = BEST_PENALTY_KEYWORD,
    P: Sequence[int] | None = None,
    fits: bool = True,
    check: bool | int = False,
    intercept: bool = True,
    standardise: bool = True,
    positive: str | None = None,
    numbers: bool = False,
    key: int = 0,
) -> xr.Dataset:
    r"""Predict the error of a linear learner on fresh rows at each number of examples P.

    The learner minimises :math:`\sum_\mu\ell(y^\mu h^\mu) + \tfrac\lambda2|\mathbf w|^2`,
    :math:`h = \mathbf w\cdot\mathbf x + b`, of P rows drawn without replacement. Columns are centred and standardised,
    and rows divided by one number so that the mean of :math:`|\mathbf x|^2` is 1.

    Parameters
    ----------
    X : array (n, N), pandas.DataFrame, or path of a file
        Rows. Text in a data frame or a file becomes indicators, and column means replace missing cells. Constant
        columns are dropped.
    y : array (n,) or str
        A target of two values or of numbers, or the name or number of its column. By default the last column.
    loss
        One of `statmech.LOSSES`; by default "logistic" for a target of two values, "square" for numbers.
    lam
        Strength of the penalty, above 0, or "best" for the penalty with the smallest error at each P.
    P
        Numbers of examples; by default from n/16 to 4 n.
    fits
        Whether to measure the error of theory by fits to the table. False: theory alone, without fits.
    check
        Whether to fit at each P below n as well: `True` for 20 sets of examples, or their number.
    intercept
        Whether the learner has an intercept b, which has no penalty.
    standardise
        Whether columns are divided by their standard deviations.
    positive
        The value of the target that is predicted against all other values.
    numbers
        Whether to treat a target of two values as a number and predict its squared error.
    key
        Key of the random numbers that select the sets of examples.

    Returns
    -------
    xarray.Dataset
        Variables of P: `eps_y`, the fraction of wrong labels, or `mse`, the mean squared error of a target with its
        noise; `..._low` and `..._high`, the ends of a 90 % band; `..._theory`, theory alone; `lam`; with `check` also
        `..._fit`, the error on the rows that were not examples, averaged over sets, and `..._fit_error`, its standard
        error. Variables of `size`, the three measured numbers of examples: `..._measured`, `..._measured_error`,
        `..._measured_theory`. NaN means that the table does not determine the error.
        Attributes: `verdict`, the diagnosis, `notes` and `warnings`, one sentence per line, and `cites`, the keys of
        papers, separated by spaces (`statmech.results.export_and_citations.format_bibtex`).

    Raises
    ------
    ConfigError
        If the table, the loss, the penalty or the numbers of examples are not valid.

    Notes
    -----
    Generalised cross-validation (Golub, Heath & Wahba 1979) moved from n rows to P (Jacot et al. 2020; Wei, Hu &
    Steinhardt 2022; Misiakiewicz & Saeed 2024). For classes: the equations of Mignacco et al. (2020) and Loureiro et
    al. (2021), where the resolvent replaces the population's covariance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.where(np.arange(400) % 2, 1, -1)
    >>> X = rng.standard_normal((400, 40)) + 0.25 * y[:, None]
    >>> curve = predict_learning_curve(X, y, lam=0.1, P=[40, 400, 1600])
    >>> curve.eps_y.values.round(3), curve.verdict
    (array([0.121, 0.088, 0.077]), 'good')
    """
    table = load_labelled_table(X, y, numbers=numbers, positive=positive)
    prepared = LearningCurvePredictor(table, loss, intercept=intercept, standardise=standardise)
    return prepared.predict(lam=lam, P=P, fits=fits, check=check, key=key)


def load_labelled_table(
    X: object,
    y: object,
    file: TableFileFormat = table_files.DEFAULT_FILE_FORMAT,
    options: ColumnOptions = table_columns.DEFAULT_COLUMN_OPTIONS,
    *,
    numbers: bool = False,
    positive: str | None = None,
) -> LabelledTable:
    """Load the table of a learning curve from a file, a data frame or arrays, with its target.

    Parameters
    ----------
    X, y, numbers, positive
        As for `predict_learning_curve`.
    file, options
        Format of the file, and treatment of columns and missing cells.
    """
    from os import PathLike

    if isinstance(X, str | PathLike):
        return read_labelled_table(str(X), str(y), file, options, numbers=numbers, positive=positive)
    options = (
        options if hasattr(X, "columns") else ColumnOptions(options.drop, NO_INDEX_COLUMN_KEYWORD, options.missing)
    )
    return make_labelled_table(X, y, numbers=numbers, positive=positive, options=options)


class PenaltyCurves(NamedTuple):
    """Penalties (P,), theoretical and anchored errors (P,), and anchored errors by class (2, P)."""

    lam: np.ndarray
    total_error_curve: PredictedCurve
    classes: np.ndarray


class LearningCurvePredictor:
    """A table prepared for predicting learning curves, with a cache of all measurements.

    Parameters
    ----------
    table
        The table.
    loss, intercept, standardise
        As for `predict_learning_curve`.
    """

    def __init__(self, table: LabelledTable, loss: str | None = None, intercept: bool = True, standardise: bool = True):
        from theory.convex.real_tables import FreshRowErrorPredictor

        self.table: RealTable = make_real_table(table, standardise)
        self.loss_name, self.loss = _get_loss(loss, self.table)
        self.intercept, self.standardise, self.notes = intercept, standardise, table.notes
        self.rows: FreshRowErrorPredictor = FreshRowErrorPredictor(self.table, intercept)
        self.name = "eps_y" if self.table.labels else "mse"
        self._fits: dict[tuple[int, float, int, int], tuple[float, float]] = {}
        self._left_out: dict[float, np.ndarray] = {}

    @cached_property
    def sizes(self) -> np.ndarray:
        """The numbers of examples at which learners are fitted: one eighth, one half and all of the rows."""
        n = len(self.table.Z)
        return np.array([max(n // 8, MIN_FIT_EXAMPLES), n // 2, n])

    @cached_property
    def label_fractions(self) -> np.ndarray:
        """The fractions (2,) of the labels +1 and -1."""
        positives = float(np.mean(self.table.y > 0))
        return np.array([positives, 1 - positives])

    def predict(
        self,
        *,
        lam: float | str = BEST_PENALTY_KEYWORD,
        P: Sequence[int] | None = None,
        fits: bool = True,
        check: bool | int = False,
        key: int = 0,
    ) -> xr.Dataset:
        """Predict the learning curve.

        Parameters
        ----------
        lam, P, fits, check, key
            As for `predict_learning_curve`.
        """
        import xarray as xr

        is_positive = isinstance(lam, int | float) and not isinstance(lam, bool) and 0 < lam < np.inf
        if lam != BEST_PENALTY_KEYWORD and not is_positive:
            raise ConfigError(f"{format_option('--lam', 'lam')} must be a number above 0, or best, not {lam!r}")
        examples = _choose_example_counts(P, len(self.table.Z))
        values, attributes = (self._predict_anchored if fits else self._predict_by_theory)(examples, lam, key)
        if check:
            sets = DEFAULT_NUM_CHECK_SETS if check is True else int(check)
            check_fits = [
                self._fit_example_sets(p, strength, sets, key)
                for p, strength in zip(examples, values["lam"], strict=True)
            ]
            values |= {
                f"{self.name}_fit": np.array(check_fits)[:, 0],
                f"{self.name}_fit_error": np.array(check_fits)[:, 1],
            }
        variables = {
            name: (("size",) if "_measured" in name else ("label", "P") if "_class" in name else ("P",), array)
            for name, array in values.items()
        }
        coordinates: dict[str, Any] = {"P": examples, "size": self.sizes}
        if self.table.labels:
            coordinates["label"] = list(self.table.labels)
        return xr.Dataset(variables, coordinates, {**self._collect_attributes(lam, fits), **attributes})

    def _collect_attributes(self, lam: float | str, fits: bool) -> dict[str, Any]:
        table = self.table
        about: dict[str, Any] = {
            "loss": self.loss_name,
            "lam": str(lam),
            "intercept": int(self.intercept),
            "standardised": int(self.standardise),
            "target": table.kind,
            "notes": "\n".join(self.notes),
            **diagnose_table(table),
            "cites": " ".join([*LEARNING_CURVE_CITATION_KEYS, *(CLASSIFICATION_CITATION_KEYS if table.labels else ())]),
        }
        if table.labels:
            about["rarer_label"] = table.labels[int(np.argmin(self.label_fractions))]
            about["rarer_fraction"] = float(self.label_fractions.min())
        else:
            about["target_variance"] = float(np.var(table.y))
        return about

    def _predict_by_theory(
        self, P: np.ndarray, lam: float | str, key: int
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Predict a learning curve by theory alone, and return its variables and attributes."""
        strengths = (
            self.rows.find_best_penalties(self.loss, P) if lam == BEST_PENALTY_KEYWORD else np.full(len(P), lam, float)
        )
        state = self.rows.predict_errors(self.loss, P, strengths)
        return {self.name: state.eps_y if self.table.labels else state.mse_y, "lam": strengths}, {"verdict": "theory"}

    def _predict_anchored(
        self, P: np.ndarray, lam: float | str, key: int
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        from theory.convex import anchored_curves

        name, n, count = self.name, len(self.table.Z), len(P)
        points = np.concatenate([P, self.sizes])
        curves = (
            self._compute_curves_at_best_lam(points)
            if lam == BEST_PENALTY_KEYWORD
            else self._compute_curves_at_penalty(points, float(lam))
        )
        measured = self._measure_errors(curves.lam[count:], key)
        curve, measured_curve = curves.total_error_curve.split(count)
        stabilities = self._get_leave_one_out_values(curves.lam[-1])
        wrong = float(np.sum(_score_wrong_labels(stabilities))) if self.table.labels else np.inf
        scale = self._make_error_scale(measured)
        verdict = anchored_curves.judge_theory(measured, measured_curve, scale, wrong)
        error = anchored_curves.move_curve_to_errors(P, curve, measured, measured_curve, scale)
        if verdict not in ("good", "moved") or n < 2 * self.table.N:
            error = np.where(n < P, np.nan, error)
        half = scale.compute_half_band(error)
        values = {
            name: error,
            f"{name}_low": np.maximum(error - half, 0),
            f"{name}_high": error + half,
            f"{name}_theory": curve.theory,
            "lam": curves.lam[:count],
            f"{name}_measured": measured.error,
            f"{name}_measured_error": measured.deviation,
            f"{name}_measured_theory": measured_curve.theory,
        }
        attributes: dict[str, Any] = {
            "verdict": verdict,
            "drift": _compute_log_ratio_drift(measured, measured_curve, scale),
            "wrong": wrong,
        }
        if self.table.labels:
            with np.errstate(all="ignore"):
                values["eps_y_class"] = np.minimum(curves.classes[:, :count] * error / curve.anchored, 1.0)
            right = self.table.y > 0
            attributes["class_errors"] = [
                float(np.mean(_score_wrong_labels(stabilities[rows]))) for rows in (right, ~right)
            ]
        return values, attributes

    def _make_error_scale(self, measured: MeasuredErrors) -> ErrorScale:
        """Return the scale for shifting the errors of a learning curve from theory to the measurements."""
        from theory.convex.anchored_curves import LabelErrorScale, SquaredErrorScale

        if self.table.labels:
            return LabelErrorScale(len(self.table.Z))
        return SquaredErrorScale(float(measured.deviation[-1] / measured.error[-1]))

    def _get_leave_one_out_values(self, lam: float) -> np.ndarray:
        """Return the leave-one-out stabilities or residuals (n,) of all rows for a learning curve."""
        from simulate.convex.table_fits import leave_one_out_loss_arguments

        if lam not in self._left_out:
            self._left_out[lam] = leave_one_out_loss_arguments(self.table, self.loss, lam, self.intercept)
        return self._left_out[lam]

    def _measure_errors(self, lam: np.ndarray, key: int) -> MeasuredErrors:
        """Measure the errors that anchor a learning curve: of fits at two sizes, and leave-one-out at all rows."""
        from statmech.kinds.convex_fit import estimate_fit_seconds
        from theory.convex.anchored_curves import MeasuredErrors

        n, N = self.table.Z.shape
        seconds = sum(estimate_fit_seconds(self.loss, int(P), N) for P in self.sizes[:2])
        sets = int(np.clip(FIT_BUDGET_SECONDS / seconds, MIN_FIT_SETS, MAX_FIT_SETS))
        fits = [
            self._fit_example_sets(P, strength, sets, key) for P, strength in zip(self.sizes[:2], lam, strict=False)
        ]
        left = self._get_leave_one_out_values(float(lam[-1]))
        errors = _score_wrong_labels(left) if self.table.labels else left**2
        mean = float(np.mean(errors))
        deviation = np.sqrt(max(mean, 1 / n) * (1 - mean) / n) if self.table.labels else np.std(errors) / np.sqrt(n)
        errors_and_deviations = np.array([*fits, (mean, float(deviation))])
        return MeasuredErrors(self.sizes, errors_and_deviations[:, 0], errors_and_deviations[:, 1])

    def _fit_example_sets(self, P: int, lam: float, sets: int, key: int) -> tuple[float, float]:
        """Return the mean test error of fits on a learning curve and its standard error, or NaN if P >= n.

        Each fit is tested on the rows that were not examples.
        """
        from simulate.convex.table_fits import fit_table_rows, measure_table_errors

        table, n = self.table, len(self.table.Z)
        if n <= P or not np.isfinite(lam):
            return np.nan, np.nan
        cache_key = (int(P), float(lam), sets, key)
        if cache_key not in self._fits:
            errors = []
            for index in range(sets):
                order = np.random.default_rng([key, int(P), index]).permutation(n)
                w = fit_table_rows(table, self.loss, float(lam), order[:P], self.intercept).w
                fit_errors = measure_table_errors(table, w, order[P:])
                errors.append(fit_errors.labels if table.labels else fit_errors.mean_squared_error)
            deviation = np.std(errors, ddof=1) / np.sqrt(sets) if sets > 1 else np.nan
            self._fits[cache_key] = float(np.mean(errors)), float(deviation)
        return self._fits[cache_key]

    def _compute_curves_at_penalty(self, P: np.ndarray, lam: float) -> PenaltyCurves:
        """Compute the learning curves for one penalty."""
        from theory.convex.anchored_curves import PredictedCurve, compute_anchored_errors, standardise_stabilities

        n, strengths = len(self.table.Z), np.full(len(P) + 1, lam)
        left = self._get_leave_one_out_values(lam)
        if not self.table.labels:
            theory = self.rows.predict_errors(self.loss, np.append(P, n).astype(float), strengths).mse_y
            anchored = theory[:-1] * np.mean(left**2) / theory[-1]
            return PenaltyCurves(strengths[:-1], PredictedCurve(theory[:-1], anchored), np.empty((0, len(P))))
        positions = self.rows.positions(self.loss, np.append(P, n - 1).astype(float), strengths)
        measured = standardise_stabilities(left, self.table.y)
        classes = compute_anchored_errors(positions[:, :-1], positions[:, -1:], measured, self.label_fractions)
        theory = self.rows.predict_errors(self.loss, P.astype(float), strengths[:-1]).eps_y
        anchored = self.label_fractions @ classes
        anchored = np.where(np.isnan(anchored), theory, anchored)  # w = 0 predicts the more frequent label
        return PenaltyCurves(strengths[:-1], PredictedCurve(theory, anchored), classes)

    def _compute_curves_at_best_lam(self, P: np.ndarray) -> PenaltyCurves:
        """Compute the learning curves at the penalty of smallest anchored error for each number of examples."""
        from theory.convex.anchored_curves import PredictedCurve

        grid = np.log(PENALTY_GRIDS[bool(self.table.labels)])
        penalty_curves = [self._compute_curves_at_penalty(P, float(lam)) for lam in np.exp(grid)]
        with np.errstate(all="ignore"):  # log(0) for an error of 0
            log_errors = np.log([curves.total_error_curve.anchored for curves in penalty_curves]).T
        log_lam = np.array([_find_best_log_penalty(grid, column) for column in log_errors])
        if self.table.labels and np.isnan(log_lam).any():  # theory fails on the table: use leave-one-out
            left_out = [
                float(np.mean(_score_wrong_labels(self._get_leave_one_out_values(float(lam))))) for lam in np.exp(grid)
            ]
            log_lam[np.isnan(log_lam)] = grid[::-1][np.argmin(left_out[::-1])]
        state = self.rows.predict_errors(self.loss, P.astype(float), np.exp(log_lam))
        theory = state.eps_y if self.table.labels else state.mse_y
        anchored = np.exp(
            [_interpolate_log_error(grid, column, lam) for column, lam in zip(log_errors, log_lam, strict=True)]
        )
        by_class = np.array([curves.classes for curves in penalty_curves])  # shape (penalty, class, P)
        classes = [
            [np.interp(lam, grid, values) for lam, values in zip(log_lam, rows.T, strict=True)]
            for rows in by_class.swapaxes(0, 1)
        ]
        return PenaltyCurves(np.exp(log_lam), PredictedCurve(theory, anchored), np.array(classes))


def _score_wrong_labels(stabilities: np.ndarray) -> np.ndarray:
    """Return 1 for each negative stability, which means a wrong label, and 1/2 for each zero."""
    return 0.5 - 0.5 * np.sign(stabilities)


def _find_best_log_penalty(log_lam: np.ndarray, log_errors: np.ndarray) -> float:
    """Return a learning curve's best ln lambda: the minimum of a spline through the tried penalties, or NaN."""
    is_finite = np.isfinite(log_errors)
    if is_finite.sum() < MIN_SPLINE_KNOTS:  # not enough known positive errors
        if np.isnan(log_errors).all():
            return np.nan
        # among equal errors, take the strongest penalty
        return float(log_lam[len(log_lam) - 1 - int(np.nanargmin(log_errors[::-1]))])
    tried = log_lam[is_finite]
    line = np.linspace(tried[0], tried[-1], NUM_PENALTY_SEARCH_POINTS)
    values = _make_spline(tried, log_errors[is_finite])(line)
    return float(line[NUM_PENALTY_SEARCH_POINTS - 1 - int(np.argmin(values[::-1]))])


def _interpolate_log_error(log_lam: np.ndarray, log_errors: np.ndarray, penalty: float) -> float:
    """Interpolate the logarithm of a learning curve's error between the tried penalties."""
    is_finite = np.isfinite(log_errors)
    if is_finite.sum() < MIN_SPLINE_KNOTS or not np.isfinite(penalty):
        distances = np.abs(log_lam - penalty)
        return float(log_errors[int(np.nanargmin(distances))]) if np.isfinite(penalty) else np.nan
    return float(_make_spline(log_lam[is_finite], log_errors[is_finite])(penalty))


def _make_spline(x: np.ndarray, y: np.ndarray) -> Any:
    """Return an Akima spline through points: it overshoots less than a cubic spline."""
    from scipy.interpolate import Akima1DInterpolator

    return Akima1DInterpolator(x, y, method="makima")


def _compute_log_ratio_drift(measured: MeasuredErrors, curve: PredictedCurve, scale: ErrorScale) -> float:
    """Return the change of ln(measured / theory) along a learning curve, from the smallest size to all rows.

    A change of less than 2 standard errors is returned as 0.
    """
    from theory.convex.anchored_curves import compute_log_error_ratios

    ratios = compute_log_error_ratios(measured, curve.theory, scale)
    noise = measured.deviation / np.maximum(measured.error, scale.smallest_measurable_error)
    drift = ratios[-1] - ratios[0]
    return float(drift) if abs(drift) > 2 * np.hypot(noise[0], noise[-1]) else 0.0


def _get_loss(name: str | None, table: RealTable) -> tuple[str, Loss]:
    """Return the name of a learning curve's loss and the loss after checking that it suits the target."""
    name = name or ("logistic" if table.labels else "square")
    if name not in LOSSES or name in DESCENT_ONLY_LOSSES:
        known_losses = [known for known in LOSSES if known not in DESCENT_ONLY_LOSSES]
        raise ConfigError(f"loss: {format_unknown_name(name, 'a loss', known_losses)}")
    if table.labels is None and name != "square":
        raise ConfigError(f"the target is a number: the loss must be square, not {name}")
    return name, LOSSES[name]()


def _choose_example_counts(P: Sequence[int] | None, n: int) -> np.ndarray:
    """Check a learning curve's numbers of examples, and return them or, by default, powers of two times n."""
    if P is None:
        doublings = np.arange(np.log2(MIN_EXAMPLES_PER_ROW), np.log2(MAX_EXAMPLES_PER_ROW) + 1)
        return np.unique(np.maximum((n * 2.0**doublings).astype(int), 2))
    examples = np.unique(np.atleast_1d(np.asarray(P)))
    if examples.dtype.kind not in "iu" or examples.size == 0 or examples[0] < 2:
        raise ConfigError(f"{format_option('--examples', 'P')} must be integers of at least 2, not {examples.tolist()}")
    return examples
