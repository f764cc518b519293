"""The text report of a learning curve: the table, the learner, errors with bands, verdict and expected gain."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np
import xarray as xr

from statmech.learning_curve import PENALTY_GRIDS
from statmech.numerics.statistics import take_mean_square_roots

REPORT_LINE_LETTERS = 79
ERROR_NAMES = {"eps_y": "error", "mse": "rms error"}  # eps_y: fraction of wrong labels; mse: mean squared residual
LOG_GAIN_HALF_BAND_PER_DOUBLING = 0.075  # half-width of the 90 % band of ln(gain), per doubling of the examples
# change of ln(measured / theory); if more negative, more rows help more than predicted
STEEP_CURVE_DRIFT_THRESHOLD = -0.3
# error relative to always predicting the more frequent label
USELESS_LEARNER_ERROR_RATIO, WEAK_LEARNER_ERROR_RATIO = 0.95, 0.9
MIN_RELIABLE_ROWS_PER_COLUMN = 10  # with fewer rows per column, theory alone is noisy
PENALTY_JUMP_FACTOR = 10  # between neighbouring sizes: the error hardly depends on the penalty
PENALTY_EDGE_FACTOR = 1.01  # factor: a best penalty this close to the ends of the tried penalties is at the edge


def format_curve_report(curve: xr.Dataset) -> str:
    """Format the report of a learning curve: table, learner, errors, verdict and expected gain.

    Parameters
    ----------
    curve
        The result of `statmech.predict_learning_curve`.
    """
    name = "eps_y" if "eps_y" in curve else "mse"
    curve = take_mean_square_roots(curve, "mse")
    lines = [
        *_format_table_summary(curve),
        *_format_learner_summary(curve),
        "",
        *_format_error_table(curve, name),
        "",
        *_format_weak_learner_note(curve, name),
        *_format_verdict(curve, name),
        *_format_notes(curve, name),
        *_format_expected_gain(curve, name),
    ]
    return "\n".join(textwrap.fill(line, REPORT_LINE_LETTERS, subsequent_indent="  ") for line in lines)


def _format_error(error: float) -> str:
    return f"{error:,.0f}" if error >= 1000 else f"{error:.4g}"


def _format_table_summary(curve: xr.Dataset) -> Iterator[str]:
    """Yield the report's lines about the table of a learning curve: rows, columns and target."""
    about = curve.attrs
    notes = about["notes"].splitlines()
    plain = f"{about['rows']:,} rows, {about['columns']:,} columns"
    constant = f"; {about['constant_columns']} constant columns left out" if about["constant_columns"] else ""
    target = f"; target: {about['target']}"
    if "rarer_label" in about:
        target = f"; labels: {about['target']}, {100 * about['rarer_fraction']:.2g} % are {about['rarer_label']}"
    if "target_variance" in about:
        target += f", standard deviation {_format_error(about['target_variance'] ** 0.5)}"
    yield f"{notes[0] if notes else plain}{constant}{target}"
    yield from (note for note in notes[1:])


def _format_learner_summary(curve: xr.Dataset) -> Iterator[str]:
    """Yield the report's line about the learner: loss, penalty and intercept."""
    about = curve.attrs
    penalty = "the best l2 penalty at each size" if about["lam"] == "best" else f"l2 penalty lam = {about['lam']}"
    intercept = "an intercept that is not penalised" if about["intercept"] else "no intercept"
    columns = "standardised" if about["standardised"] else "as they are"
    yield f"learner: {about['loss']} loss, {penalty}, {intercept}; columns {columns}"


def _format_error_table(curve: xr.Dataset, name: str) -> Iterator[str]:
    """Yield the report's lines with the errors of a learning curve at each number of examples."""
    banded = f"{name}_low" in curve
    largest = float(curve[name].max()) if curve[name].notnull().any() else 1.0
    digits = 4 if name == "eps_y" else max(0, 4 - int(np.floor(np.log10(largest or 1.0))))

    def number(value: float) -> str:
        return f"{value:,.{digits}f}"

    best = curve.attrs["lam"] == "best"
    head = f"{'examples':>8}  {ERROR_NAMES[name]:>9}" + (f"  {'90 % band':>16}" if banded else "")
    yield head + (f"  {'measured':>16}  {'theory alone':>12}" if banded else "") + (f"  {'lam':>7}" if best else "")
    measured = (
        dict(zip(curve.size.values.tolist(), zip(*_get_measured_errors(curve, name), strict=True), strict=True))
        if banded
        else {}
    )
    for index, P in enumerate(curve.P.values.tolist()):
        row = curve.isel(P=index)
        error = float(row[name])
        line = f"{P:>8,}  {number(error) if np.isfinite(error) else 'not known':>9}"
        if banded:
            band = f"{number(float(row[f'{name}_low']))} - {number(float(row[f'{name}_high']))}"
            line += f"  {band if np.isfinite(error) else '':>16}"
            fits = measured.get(P)
            if f"{name}_fit" in curve and np.isfinite(row[f"{name}_fit"]):
                fits = float(row[f"{name}_fit"]), float(row[f"{name}_fit_error"])
            line += f"  {f'{number(fits[0])} +- {number(fits[1])}' if fits else '':>16}"
            theory = float(row[f"{name}_theory"])
            line += f"  {number(theory) if np.isfinite(theory) else '':>12}"
        elif f"{name}_fit" in curve and np.isfinite(row[f"{name}_fit"]):
            line += f"  fits {number(float(row[f'{name}_fit']))} +- {number(float(row[f'{name}_fit_error']))}"
        yield (line + (f"  {float(row.lam):>7.3g}" if best else "")).rstrip()


def _get_measured_errors(curve: xr.Dataset, name: str) -> tuple[list[float], list[float]]:
    """Return the measured errors and their standard errors."""
    return curve[f"{name}_measured"].values.tolist(), curve[f"{name}_measured_error"].values.tolist()


def _format_verdict(curve: xr.Dataset, name: str) -> Iterator[str]:
    """Yield the report's sentence about the agreement of a learning curve's theory with measurements."""
    verdict, rows = curve.attrs["verdict"], curve.attrs["rows"]
    if verdict == "theory":
        yield "theory alone: nothing was measured, and theory may be off by a factor."
        return
    low, middle, _ = (f"{size:,}" for size in curve.size.values.tolist())
    factor = _describe_theory_deviation(curve, name)
    if verdict == "good":
        quality = "theory agrees" if _compare_with_constant(curve, name) else "good"
        yield (
            f"verdict: {quality}. Theory alone agrees with fits at {low} and {middle} examples and with "
            f"leave-one-out at {rows:,}, within 15 % or 1.5 standard errors."
        )
    elif verdict == "moved":
        yield (
            f"verdict: moved. Theory alone is {factor} on this table, which is not as theory assumes; the errors above "
            "go through what was measured."
        )
    elif verdict == "unsure":
        reason = f"is {factor} and" if factor else "does not know this table, or"
        yield (
            f"verdict: unsure. Theory alone {reason} does not have the shape of this table's curve: trust the measured "
            f"errors, and nothing beyond {rows:,} examples."
        )
    else:
        yield (
            f"verdict: too few errors to measure. {curve.attrs['wrong']:.3g} of {rows:,} rows are wrong "
            "(leave-one-out): the band says what is known, and nothing is said beyond the rows."
        )


def _describe_theory_deviation(curve: xr.Dataset, name: str) -> str:
    """Describe in the report the largest factor between a learning curve's theory and a measurement."""
    floor = 0.3 / curve.attrs["rows"] if name == "eps_y" else 0.0
    ratios = (curve[f"{name}_measured"].values + floor) / (curve[f"{name}_measured_theory"].values + floor)
    if not np.isfinite(ratios).any():
        return ""
    worst = float(ratios[np.nanargmax(np.abs(np.log(ratios)))])
    return f"up to {worst:.2g} times too small" if worst > 1 else f"up to {1 / worst:.2g} times too large"


def _get_constant_error(curve: xr.Dataset, name: str) -> float:
    """Return the error of always answering the more frequent label or the mean of the target."""
    return float(curve.attrs["rarer_fraction"] if name == "eps_y" else curve.attrs["target_variance"] ** 0.5)


def _compare_with_constant(curve: xr.Dataset, name: str) -> str:
    """Return how much better than a constant answer a learner is: "no", "hardly", or an empty string."""
    ratio = float(curve[name].sel(P=curve.attrs["rows"], method="nearest")) / _get_constant_error(curve, name)
    return "no" if ratio > USELESS_LEARNER_ERROR_RATIO else "hardly" if ratio > WEAK_LEARNER_ERROR_RATIO else ""


def _format_weak_learner_note(curve: xr.Dataset, name: str) -> Iterator[str]:
    """Yield the report's note about a learner that is hardly better than a constant answer."""
    if better := _compare_with_constant(curve, name):
        constant_error = _get_constant_error(curve, name)
        frequent = f"always answering the more frequent label errs on {constant_error:.4f}"
        mean = f"always answering the mean of the target has the error {_format_error(constant_error)}"
        yield f"note: {frequent if name == 'eps_y' else mean}; this learner is {better} better."


def _format_notes(curve: xr.Dataset, name: str) -> Iterator[str]:
    """Yield the report's notes about errors by class, extreme penalties and few rows."""
    about, has_labels = curve.attrs, name == "eps_y"
    if has_labels and "class_errors" in about:
        first_error, second_error = about["class_errors"]
        high, low = curve.label.values.tolist()
        by_class = f"{high} {first_error:.4f}, {low} {second_error:.4f}"
        yield f"errors by class with all rows: {by_class}; their mean {(first_error + second_error) / 2:.4f}"
    if about["lam"] == "best" and (ends := _format_penalty_edge_note(curve, name)):
        yield ends
    if about["lam"] == "best" and (np.abs(np.diff(np.log(curve.lam))) > np.log(PENALTY_JUMP_FACTOR)).any():
        yield "note: the best penalty jumps between sizes, because the error hardly depends on it near its minimum."
    if about["rows"] < MIN_RELIABLE_ROWS_PER_COLUMN * about["columns"]:
        yield (
            f"note: {about['rows']:,} rows of {about['columns']:,} columns: fewer than ten rows per column, theory "
            "alone is itself noisy."
        )


def _format_penalty_edge_note(curve: xr.Dataset, name: str) -> str:
    """Return the report's note on a best penalty at an end of the tried penalties, else an empty string."""
    tried = PENALTY_GRIDS[name == "eps_y"]
    lam = curve.lam.values
    ends = [
        end
        for end, is_edge in (
            (tried[0], lam <= tried[0] * PENALTY_EDGE_FACTOR),
            (tried[-1], lam >= tried[-1] / PENALTY_EDGE_FACTOR),
        )
        if is_edge.any()
    ]
    if not ends:
        return ""
    which = " and ".join(f"{end:g}" for end in ends)
    return f"note: the best penalty is at the edge of the tried penalties, {tried[0]:g} to {tried[-1]:g}: {which}."


def _format_expected_gain(curve: xr.Dataset, name: str) -> Iterator[str]:
    """Yield the report's sentences about the expected gain from more rows."""
    known_errors = curve.dropna("P", subset=[name])
    rows = curve.attrs["rows"]
    if not known_errors.sizes["P"]:
        yield "The table's rows do not determine the error at any of these numbers of examples."
        return
    last = known_errors.isel(P=-1)
    current = known_errors.sel(P=rows, method="nearest")
    if curve.attrs["verdict"] != "theory" and int(last.P) <= rows < int(curve.P[-1]):
        yield "What more rows would bring is not known from this table."
        return
    if curve.attrs["verdict"] == "theory" and int(last.P) < int(curve.P[-1]):
        yield f"The table's rows do not determine the error of more than {int(last.P):,} of these numbers of examples."
    if int(last.P) <= int(current.P):
        return
    times, before, after = float(last.P / current.P), float(current[name]), float(last[name])
    gain = round(100 * (1 - after / before))
    less, unit = ("fewer", "errors") if name == "eps_y" else ("less", "error")
    change = f"{abs(gain)} % {less if gain >= 0 else 'more'} {unit}"
    sentence = f"{times:.3g} times as many rows: {_format_error(before)} -> {_format_error(after)}, {change}"
    if curve.attrs["verdict"] != "theory":
        width = LOG_GAIN_HALF_BAND_PER_DOUBLING * np.log2(times) * (1.0 if name == "eps_y" else 0.5)
        ends = [100 * (1 - after / before * np.exp(sign * width)) for sign in (1, -1)]
        sentence += f" (90 % band of this gain: {ends[0]:.0f} to {ends[1]:.0f} %)"
    yield sentence
    if curve.attrs.get("drift", 0.0) < STEEP_CURVE_DRIFT_THRESHOLD:
        yield "note: measured errors fall faster with the rows than theory's: more rows may help more than this."
