"""The inputs of a scenario as sliders: two variances or a power law, and the direction of the teacher.

A page offers the distributions in its `inputs`, isotropic inputs, and the initial inputs of its config, such as the
rows of a file. No other file of the explorer handles this key.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from figures.explorer import settings
from figures.explorer.forms import Form, FormMenu, Slider
from statmech.inputs import Inputs, PowerLaw, Rows, Spectrum, inputs_from, label_of, written

ISOTROPIC = "isotropic"
GAUSSIAN = "gaussian"  # name of isotropic inputs in a config
RANDOM = "random"  # a teacher without a preferred direction
DIGITS = 8  # the rounded teacher's parts must add up to 1
SHOWN = 5  # rounds the initial value of a slider
SMALLEST_NUMBER = 2  # theory requires a number, although two variances do not depend on it


def _steps(last: float) -> tuple[float, ...]:
    return tuple(round(0.05 * step, 2) for step in range(round(last / 0.05) + 1))


def two_variances(spread: float, alignment: Any = RANDOM) -> Spectrum:
    """Return a spectrum with the variances 1 - D and 1 + D in equal fractions.

    `alignment` is the part of the teacher's field variance in the directions of larger variance.

    >>> two_variances(0.8, 0.9)
    Spectrum(eigenvalues=(0.2, 1.8), shares=(), teacher=(0.5, 0.5), misfit=0.0, ridge=())
    """
    variances = np.array([settings.rounded(1 - spread), settings.rounded(1 + spread)])
    if alignment == RANDOM:
        return Spectrum(tuple(variances.tolist()))
    weights = np.array([1 - alignment, alignment]) / variances
    larger = round(float(weights[1] / weights.sum()), DIGITS)
    return Spectrum(tuple(variances.tolist()), teacher=(round(1 - larger, DIGITS), larger))


def _spread(inputs: Inputs) -> tuple[Any, ...] | None:
    """Return D and the alignment of inputs with variances 1 - D and 1 + D, or None for others."""
    if not isinstance(inputs, Spectrum) or len(inputs.eigenvalues) != 2 or inputs.misfit or inputs.ridge:
        return None
    spread = settings.rounded(inputs.eigenvalues[1] - 1)
    equal = len({*inputs.shares}) < 2 and 0 <= spread < 1
    if not equal or two_variances(spread).eigenvalues != inputs.eigenvalues:
        return None
    powers = inputs.modes(SMALLEST_NUMBER).powers
    return spread, RANDOM if inputs.teacher == RANDOM else round(float(powers[1]), SHOWN)


def _exponents(inputs: Inputs) -> tuple[Any, ...] | None:
    return (inputs.decay, inputs.teacher_decay) if isinstance(inputs, PowerLaw) else None


def _written(inputs: Callable[..., Inputs]) -> Callable[..., Any]:
    """Return a function that converts the values of sliders to inputs in a config."""
    return lambda *values: written(inputs(*values))


EQUAL = Form(ISOTROPIC, (), lambda: GAUSSIAN, lambda inputs: () if written(inputs) == GAUSSIAN else None)
FORMS = {  # keys are names in a config
    "spectrum": Form(
        "two variances",
        (Slider("spread", _steps(0.95), 0.5), Slider("alignment", _steps(1.0), RANDOM, RANDOM)),
        _written(two_variances),
        _spread,
    ),
    "power_law": Form(
        "power law",
        (Slider("decay", _steps(3.0), 1.0), Slider("teacher decay", _steps(4.0), 1.5)),
        _written(PowerLaw),
        _exponents,
    ),
}


def input_menu(choice: str, config: dict[str, Any]) -> FormMenu:
    """Return the menu of the input distributions of a page, including isotropic inputs."""
    forms = {name: FORMS[name] for name in settings.page_of(choice).inputs}
    return FormMenu(settings.INPUTS, {"": EQUAL, **forms} if forms else {}, config, GAUSSIAN, inputs_from, _label)


def _label(inputs: Inputs) -> str:
    """Return the menu label of inputs, which for rows of a file is the file name."""
    return Path(inputs.path).name if isinstance(inputs, Rows) else label_of(inputs)
