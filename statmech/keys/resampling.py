"""The config key `resample`: the part of the examples that each student of an ensemble learns.

With `{share: s}`, a student learns each example with probability s, or s P of P stored examples. With `bootstrap`, it
learns P draws with replacement from P stored examples. Each student draws its part independently of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, PlainSerializer, PlainValidator

from statmech.errors import format_unknown_name, quote_value
from statmech.keys.sweep_grid import PydanticTypeOverride, axis_of, expand_spacing, make_axis_schema

BOOTSTRAP_KEYWORD = "bootstrap"
FRACTION_KEY = "share"
FRACTION_SCHEMA = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
RESAMPLING_SCHEMA = {
    "anyOf": [
        {
            "type": "object",
            "properties": {FRACTION_KEY: make_axis_schema(FRACTION_SCHEMA, spaced=True)},
            "required": [FRACTION_KEY],
            "additionalProperties": False,
        },
        {"const": BOOTSTRAP_KEYWORD},
    ]
}


@dataclass(frozen=True)
class Resampling:
    """Part of the examples that each student learns, drawn independently for each student.

    `share` is the mean number of times that a student learns an example, which is 1 for `bootstrap`.

    >>> Resampling(0.5), Resampling(bootstrap=True).share
    (Resampling(share=0.5, bootstrap=False), 1.0)
    """

    share: float = 1.0  # style: ok
    bootstrap: bool = False

    @property
    def axis_label(self) -> float | str:
        """The fraction `share`, or `bootstrap`, on a dataset axis."""
        return BOOTSTRAP_KEYWORD if self.bootstrap else self.share

    def count_examples(self, P: int) -> int:
        """Return the number of examples that a student learns from P stored examples.

        >>> Resampling(0.25).count_examples(10), Resampling(bootstrap=True).count_examples(10)
        (2, 10)
        """
        return round(self.share * P)


def resampling_from_config(form: Any) -> Resampling:
    """Read a way of resampling from its config form, `{share: s}` or `bootstrap`.

    >>> resampling_from_config({"share": 0.5}).share
    0.5
    """
    if isinstance(form, Resampling):
        return form
    if form == BOOTSTRAP_KEYWORD:
        return Resampling(bootstrap=True)
    if not isinstance(form, Mapping) or not form:
        raise ValueError(f"must be {{share: s}} or {BOOTSTRAP_KEYWORD}, not {quote_value(form)}")
    if unknown := [key for key in form if key != FRACTION_KEY]:
        raise ValueError(format_unknown_name(unknown[0], "a key of resample", [FRACTION_KEY]))
    fraction = form[FRACTION_KEY]
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction <= 1:
        raise ValueError(f"share must be a number greater than 0 and at most 1, not {quote_value(fraction)}")
    return Resampling(float(fraction))


def resampling_to_config(resampling: Resampling) -> Any:
    """Convert a way of resampling to its config form, the inverse of `resampling_from_config`.

    >>> resampling_to_config(Resampling(0.5)), resampling_to_config(Resampling(bootstrap=True))
    ({'share': 0.5}, 'bootstrap')
    """
    return BOOTSTRAP_KEYWORD if resampling.bootstrap else {FRACTION_KEY: resampling.share}


def _expand_fractions(form: Any) -> Any:
    """Expand several fractions, such as `{share: [0.2, 0.5]}`, to a list of forms with one fraction each."""
    fractions = form.get(FRACTION_KEY) if isinstance(form, Mapping) and len(form) == 1 else None
    if not isinstance(fractions, list | tuple | np.ndarray | Mapping):
        return form
    return [{FRACTION_KEY: fraction} for fraction in expand_spacing(fractions)]


ResamplingValue = Annotated[Any, PlainValidator(resampling_from_config), PlainSerializer(resampling_to_config)]
ResampleAxis = Annotated[
    Any,
    PydanticTypeOverride(
        Annotated[
            Any,
            axis_of(ResamplingValue, RESAMPLING_SCHEMA, spaced=False),
            BeforeValidator(_expand_fractions),
        ]
    ),
]
