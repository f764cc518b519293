"""Sliders for the input distribution: two variances or a power law, and the alignment of the teacher.

A page offers the distributions in its `inputs`, isotropic inputs, and the initial inputs of its config, such as the
rows of a file. No other file of the explorer handles this key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from figures.explorer import settings
from figures.explorer.forms import FormMenu, KeyForm, SliderSpec
from statmech.inputs import Inputs, PowerLaw, Spectrum, inputs_from_config, inputs_to_config

ISOTROPIC_LABEL = "isotropic"
GAUSSIAN_INPUTS_NAME = "gaussian"  # name of isotropic inputs in a config
RANDOM_TEACHER = "random"  # a teacher without a preferred direction
TEACHER_PART_DECIMALS = 8  # the rounded parts of the teacher must add up to 1
ALIGNMENT_DECIMALS = 5  # rounds the initial value of a slider
MIN_NUM_DIRECTIONS = 2  # required by theory, although two variances suffice


def _make_slider_stops(last_stop: float) -> tuple[float, ...]:
    return tuple(round(0.05 * step, 2) for step in range(round(last_stop / 0.05) + 1))


def make_two_variance_spectrum(spread: float, alignment: Any = RANDOM_TEACHER) -> Spectrum:
    """Return a spectrum with the variances 1 - D and 1 + D in equal fractions.

    `alignment` is the part of the teacher's field variance in the directions of larger variance.

    >>> make_two_variance_spectrum(0.8, 0.9)
    Spectrum(eigenvalues=(0.2, 1.8), shares=(), teacher=(0.5, 0.5), misfit=0.0, ridge=())
    """
    variances = np.array([settings.round_float(1 - spread), settings.round_float(1 + spread)])
    if alignment == RANDOM_TEACHER:
        return Spectrum(tuple(variances.tolist()))
    weights = np.array([1 - alignment, alignment]) / variances
    larger = round(float(weights[1] / weights.sum()), TEACHER_PART_DECIMALS)
    return Spectrum(tuple(variances.tolist()), teacher=(round(1 - larger, TEACHER_PART_DECIMALS), larger))


def _get_spread_and_alignment(inputs: Inputs) -> tuple[Any, ...] | None:
    """Return D and the alignment of inputs with variances 1 - D and 1 + D, or None for other inputs."""
    if not isinstance(inputs, Spectrum) or len(inputs.eigenvalues) != 2 or inputs.misfit or inputs.ridge:
        return None
    spread = settings.round_float(inputs.eigenvalues[1] - 1)
    equal = len({*inputs.shares}) < 2 and 0 <= spread < 1
    if not equal or make_two_variance_spectrum(spread).eigenvalues != inputs.eigenvalues:
        return None
    powers = inputs.modes(MIN_NUM_DIRECTIONS).powers
    return spread, RANDOM_TEACHER if inputs.teacher == RANDOM_TEACHER else round(float(powers[1]), ALIGNMENT_DECIMALS)


def _get_power_law_exponents(inputs: Inputs) -> tuple[Any, ...] | None:
    return (inputs.decay, inputs.teacher_decay) if isinstance(inputs, PowerLaw) else None


def _make_slider_value_converter(make_inputs: Callable[..., Inputs]) -> Callable[..., Any]:
    """Return a function that converts the values of sliders to inputs in a config."""
    return lambda *values: inputs_to_config(make_inputs(*values))


ISOTROPIC_FORM = KeyForm(
    ISOTROPIC_LABEL,
    (),
    lambda: GAUSSIAN_INPUTS_NAME,
    lambda inputs: () if inputs_to_config(inputs) == GAUSSIAN_INPUTS_NAME else None,
)
INPUT_MENU_FORMS = {  # keys are names in a config
    "spectrum": KeyForm(
        "two variances",
        (
            SliderSpec("spread", _make_slider_stops(0.95), 0.5),
            SliderSpec("alignment", _make_slider_stops(1.0), RANDOM_TEACHER, RANDOM_TEACHER),
        ),
        _make_slider_value_converter(make_two_variance_spectrum),
        _get_spread_and_alignment,
    ),
    "power_law": KeyForm(
        "power law",
        (SliderSpec("decay", _make_slider_stops(3.0), 1.0), SliderSpec("teacher decay", _make_slider_stops(4.0), 1.5)),
        _make_slider_value_converter(PowerLaw),
        _get_power_law_exponents,
    ),
}


def make_input_menu(kind_name: str, config: dict[str, Any]) -> FormMenu:
    """Return the menu of the input distributions of a page, including isotropic inputs."""
    forms = {name: INPUT_MENU_FORMS[name] for name in settings.get_page_settings(kind_name).inputs}
    return FormMenu(
        settings.INPUTS_KEY,
        {"": ISOTROPIC_FORM, **forms} if forms else {},
        config,
        GAUSSIAN_INPUTS_NAME,
        inputs_from_config,
        lambda inputs: inputs.menu_name,
    )
