"""The key `resample` accepts shares and the bootstrap, alone and as an axis, and explains other values."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from statmech.keys.error_messages import explain_problems
from statmech.keys.resampling import ResampleAxis, Resampling

pytestmark = pytest.mark.quick
adapter = TypeAdapter(ResampleAxis)


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ({"share": 0.5}, Resampling(0.5)),
        ({"share": 1}, Resampling(1.0)),
        ("bootstrap", Resampling(bootstrap=True)),
        ([{"share": 0.5}, "bootstrap"], (Resampling(0.5), Resampling(bootstrap=True))),
        ({"share": [0.2, 1]}, (Resampling(0.2), Resampling(1.0))),
        ({"share": {"linspace": [0.2, 0.6, 2]}}, (Resampling(0.2), Resampling(0.6))),
        ({"share": np.array([0.2])}, (Resampling(0.2),)),
    ],
)
def test_a_share_and_the_bootstrap_are_values_or_axes(form, value):
    assert adapter.validate_python(form) == value
    assert adapter.validate_python(adapter.dump_python(value, mode="json")) == value


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"share": 0}, "share must be a number greater than 0 and at most 1, not 0"),
        ({"share": 1.5}, "share must be a number greater than 0 and at most 1, not 1.5"),
        ({"share": float("nan")}, "share must be a number greater than 0 and at most 1, not NaN"),
        ({"share": True}, "share must be a number greater than 0 and at most 1, not true"),
        ({"share": "0.5"}, 'share must be a number greater than 0 and at most 1, not "0.5"'),
        ({"shares": 0.5}, '"shares" is not a key of resample. Did you mean "share"? Known: share.'),
        ({"share": 0.5, "bootstrap": True}, '"bootstrap" is not a key of resample. Known: share.'),
        (0.5, "must be {share: s} or bootstrap, not 0.5"),
        ("bootstap", 'must be {share: s} or bootstrap, not "bootstap"'),
        ({}, "must be {share: s} or bootstrap, not {}"),
    ],
)
def test_other_values_are_explained_in_one_sentence(form, sentence):
    with pytest.raises(ValidationError) as failure:
        adapter.validate_python(form)
    assert explain_problems(failure.value, []) == [((), sentence)]


def test_a_bad_value_of_an_axis_is_located_in_the_list():
    with pytest.raises(ValidationError) as failure:
        adapter.validate_python([{"share": 0.5}, {"share": 0}])
    [(location, _)] = explain_problems(failure.value, [])
    assert location == (1,)
