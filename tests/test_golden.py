"""No change of form moves a number, a random word, a stored name, or a config key.

Bits are equal on the kind of processor that recorded them (`python tests/golden.py`); here numbers are compared to
many digits, and all else exactly.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from golden import record, recorded, scenarios

pytestmark = pytest.mark.quick

RECORDED = recorded()
SCENARIOS = scenarios()
CLOSE = 1e-9  # tolerance for another processor, whose sums round differently
DRAWN = 2.0**-23  # and of learning online, whose inputs are drawn in float32: 1.4e-8 without AVX2 (XLA_FLAGS)
SIMULATED = {name: DRAWN for name in SCENARIOS if name.startswith("online")} | {"online_float32": 1e-4}
SOLVED = 1e-6  # tolerance for theory, which is solved to this accuracy


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_has_the_recorded_words_names_and_numbers(name):
    made, before = json.loads(json.dumps(record(name, SCENARIOS[name]))), RECORDED[name]
    assert (made["config"], made["words"]) == (before["config"], before["words"])
    for side in ("simulation", "theory"):
        variables, recorded = made[side] or {}, before[side] or {}
        assert list(variables) == list(recorded)
        for variable, stored in recorded.items():
            assert [variables[variable][part] for part in ("dims", "dtype")] == [stored["dims"], stored["dtype"]]
            if stored["dtype"] == "text":
                assert variables[variable]["first"] == stored["first"]
            else:
                tolerance = SOLVED if side == "theory" else SIMULATED.get(name, CLOSE)
                np.testing.assert_allclose(
                    variables[variable]["first"], stored["first"], rtol=tolerance, atol=tolerance, err_msg=variable
                )
