"""Optima that are sought in a bounded range are said to lie at its edge, wherever they are shown."""

from __future__ import annotations

import pytest
from conftest import statmech

import simulate
import theory
from statmech import compare
from statmech.kinds.selection_and_vocabulary import scenario_from

pytestmark = pytest.mark.quick

NOISE = {"loss": "logistic", "flip": 0.499, "alpha": 0.5, "N": 20, "lam": "best", "seeds": 4}


def test_a_best_penalty_beyond_the_search_is_a_note_of_the_tables_and_one_inside_is_none():
    scenario = scenario_from(NOISE | {"flip": 0.4999999})
    solved = theory.solve(scenario)
    note = "lam: best is 1e+06, the largest value that is searched (0 to 1e+06): the optimum may lie beyond"
    assert solved.attrs["edges"] == note
    assert note in repr(compare(simulate.run(scenario), solved))
    assert "edges" not in theory.solve(scenario_from(NOISE | {"flip": 0.1})).attrs
    assert "edges" not in theory.solve(scenario_from(NOISE | {"flip": 0.4999999, "lam": 1.0})).attrs


@pytest.mark.slow
def test_an_optimal_rate_at_a_bound_of_its_search_is_said_by_the_command(in_scratch, capsys):
    lines = ("rule: perceptron", "N: 20", "t: [0.5, 1]", "seeds: 2", "eta: {optimal: {segments: 2, at_most: 0.3}}")
    (in_scratch / "mine.yaml").write_text("\n".join(lines) + "\n")
    assert statmech("theory", "mine.yaml") == 0
    note = "eta: optimal, at some times, is 0.3, the largest value that is searched (0.001 to 0.3)"
    assert note in capsys.readouterr().err
