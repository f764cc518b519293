"""The inputs of a scenario as sliders: two variances or a power law, and where the teacher lies among them.

A page offers the distributions that its `inputs` names, isotropic inputs, and what its config began with, such as the
rows of a file. All that the explorer knows of this key is in this file.
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
GAUSSIAN = "gaussian"  # isotropic inputs, in a config
RANDOM = "random"  # a teacher without a preferred direction
DIGITS = 8  # of the teacher's parts, which must add up to 1
SHOWN = 5  # digits of the alignment that a slider begins with
SMALLEST_NUMBER = 2  # of directions: theory asks for a number, but two variances do not depend on it


def _steps(last: float) -> tuple[float, ...]:
    return tuple(round(0.05 * step, 2) for step in range(round(last / 0.05) + 1))


def two_variances(spread: float, alignment: Any = RANDOM) -> Spectrum:
    """Variances 1 - D and 1 + D in equal shares, the larger with this part of the variance of the teacher's field.

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
    """D and the alignment of two variances 1 - D and 1 + D in equal shares."""
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
    """The inputs at the values of sliders, as a config has them."""
    return lambda *values: written(inputs(*values))


EQUAL = Form(ISOTROPIC, (), lambda: GAUSSIAN, lambda inputs: () if written(inputs) == GAUSSIAN else None)
FORMS = {  # by their names in a config
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
    """The menu of the distributions that a page offers, and isotropic inputs."""
    forms = {name: FORMS[name] for name in settings.page_of(choice).inputs}
    return FormMenu(settings.INPUTS, {"": EQUAL, **forms} if forms else {}, config, GAUSSIAN, inputs_from, _label)


def _label(inputs: Inputs) -> str:
    """The inputs in the menu; of rows of a file, its name without the folder."""
    return Path(inputs.path).name if isinstance(inputs, Rows) else label_of(inputs)
