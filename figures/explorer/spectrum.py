"""The inputs of a scenario as sliders: two variances or a power law, and where the teacher lies among them.

A page offers the distributions that its `inputs` names, isotropic inputs, and what its config began with, such as the
rows of a file. All that the explorer knows of this key is in this file.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import panel_material_ui as pmui

from figures.explorer import settings
from figures.explorer.sliders import entitle, stopping
from statmech.inputs import Inputs, PowerLaw, Rows, Spectrum, inputs_from, label_of, written

KEY = "inputs"
ISOTROPIC = "isotropic"
GAUSSIAN = "gaussian"  # isotropic inputs, in a config
GIVEN = "as given"  # inputs that no slider describes
SEVERAL = "as listed"  # several inputs
RANDOM = "random"  # a teacher without a preferred direction
DIGITS = 8  # of the teacher's parts, which must add up to 1
SHOWN = 5  # digits of the alignment that a slider begins with
SMALLEST_NUMBER = 2  # of directions: theory asks for a number, but two variances do not depend on it


class Slider(NamedTuple):
    """The name of a slider, its stops, the value that it begins with, and a word that may stand before all stops."""

    name: str
    stops: tuple[float, ...]
    first: Any
    word: str = ""


class Form(NamedTuple):
    """Inputs that sliders describe: their inputs at the values of the sliders, and these values for inputs, or None."""

    title: str
    sliders: tuple[Slider, ...]
    inputs: Callable[..., Inputs]
    values: Callable[[Inputs], tuple[Any, ...] | None]


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


FORMS = {  # by their names in a config
    "spectrum": Form(
        "two variances",
        (Slider("spread", _steps(0.95), 0.5), Slider("alignment", _steps(1.0), RANDOM, RANDOM)),
        two_variances,
        _spread,
    ),
    "power_law": Form(
        "power law",
        (Slider("decay", _steps(3.0), 1.0), Slider("teacher decay", _steps(4.0), 1.5)),
        PowerLaw,
        _exponents,
    ),
}


class InputSliders:
    """A menu of distributions of inputs, and the sliders of each.

    While they stand as they began, the config has its `inputs` as they were written.
    """

    def __init__(self, choice: str, config: dict[str, Any]):
        self.given = config.get(KEY) or GAUSSIAN
        self.forms = {name: FORMS[name] for name in settings.page_of(choice).inputs}
        several = isinstance(self.given, list)  # each is a curve
        inputs = inputs_from(self.given[0] if several else self.given)
        name, values = (GIVEN, ()) if several else self._form_of(inputs)
        options = {ISOTROPIC: "", **{form.title: name for name, form in self.forms.items()}}
        if name == GIVEN:
            options[SEVERAL if several else html.escape(_label(inputs))] = GIVEN
        self.menu = pmui.Select(
            label=KEY, options=options, value=name, width=160, margin=(4, 6), size="small", visible=bool(self.forms)
        )
        self.sliders = {of: self._sliders(form, values if of == name else ()) for of, form in self.forms.items()}
        self.widgets = [self.menu, *(slider for sliders in self.sliders.values() for slider in sliders)]
        self.began = self._state()
        self.arrange()

    @property
    def config(self) -> dict[str, Any]:
        """The key as a config has it; nothing of scenarios without sliders."""
        if not self.forms:
            return {}
        if self._state() == self.began:
            return {KEY: self.given}
        name, values = self._state()
        return {KEY: written(self.forms[name].inputs(*values)) if name in self.forms else self._without_sliders(name)}

    def arrange(self) -> None:
        """Show the sliders of the inputs that are chosen."""
        for name, sliders in self.sliders.items():
            for slider in sliders:
                entitle(slider, slider.label, name == self.menu.value)

    def _without_sliders(self, name: str) -> Any:
        return self.given if name == GIVEN else GAUSSIAN

    def _state(self) -> tuple[str, tuple[Any, ...]]:
        name = self.menu.value
        return name, tuple(slider.value for slider in self.sliders.get(name, ()))

    def _form_of(self, inputs: Inputs) -> tuple[str, tuple[Any, ...]]:
        """The inputs in the menu, and the values of their sliders."""
        if written(inputs) == GAUSSIAN:
            return "", ()
        for name, form in self.forms.items():
            if (values := form.values(inputs)) is not None:
                return name, values
        return GIVEN, ()

    @staticmethod
    def _sliders(form: Form, values: tuple[Any, ...]) -> list[Any]:
        firsts = values or tuple(slider.first for slider in form.sliders)
        return [
            stopping(slider.name, slider.stops, first, slider.word)
            for slider, first in zip(form.sliders, firsts, strict=True)
        ]


def _label(inputs: Inputs) -> str:
    """The inputs in the menu; of rows of a file, its name without the folder."""
    return Path(inputs.path).name if isinstance(inputs, Rows) else label_of(inputs)
