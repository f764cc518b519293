"""Captions and titles state the parameters that determine the numbers, in the symbols and words of the figure."""

from __future__ import annotations

import importlib
import re
import shlex
from dataclasses import dataclass

import numpy as np
import pytest
from small import SMALL

import statmech
from figures import captions, labels
from statmech import Clusters, FixedLengthNetwork, Network, NetworkTasks, Results, Risk, Scenario, StoredExamples, run
from statmech.parameters.parameter_fields import get_parameters, parameter
from statmech.students.rules import RULES, Hebb

# keys that say how numbers are computed, or what else is recorded
SILENT = {
    *("key", "seeds", "dtype", "engine", "solver"),
    *("gram", "corrections", "strengths", "plane", "positions", "bayes"),
}
RAW_NAME = re.compile(r"[A-Za-z]{2,}_[A-Za-z]|\b[a-z]{2,} = |[{}\"']")


def parameters(scenario):
    """The part of a caption that states parameters, in plain letters."""
    return labels.plain_from_latex(captions._describe_parameters(Results(scenario)))


@pytest.mark.parametrize("kind", SMALL)
def test_a_caption_states_every_key_that_changes_the_numbers(kind):
    scenario, text = SMALL[kind], parameters(SMALL[kind])
    config = scenario.config()
    named = [kinds[name] for choice, kinds in scenario.choices().items() for name in np.ravel(config[choice])]
    used = {name for learner in named for name in get_parameters(learner)}
    for name, value in config.items():
        parameter_of_others = name in scenario.parameters and name not in used
        if name in {*SILENT, "figure", "zip", scenario.CHOICE} or parameter_of_others:
            continue
        symbol = labels.get_symbol(scenario, name)
        if symbol.startswith("$") and not isinstance(value, str):
            assert re.search(rf"(^|[ ;]){re.escape(labels.plain_from_latex(symbol))} = ", text), (name, text)
        else:
            value_text = labels.plain_from_latex(labels.format_values(scenario, name, value))
            assert value_text in text, (name, text)


@pytest.mark.parametrize("kind", SMALL)
def test_captions_and_titles_have_no_raw_names_of_keys(kind):
    for text in (
        parameters(SMALL[kind]),
        *map(labels.plain_from_latex, labels.describe_title_values(SMALL[kind])),
    ):
        assert not RAW_NAME.search(text), text


AT_DEFAULTS = {
    "clusters": (Clusters(clusters="gaussian", loss="square", alpha=[1, 2]), ("Δ = 2", "λ = 0.1", "square loss")),
    "network": (Network(network="relu", t=[0, 1]), ("M = 2", "K = 2", "η = 1", "ReLU network")),
    "rule": (Scenario(rule="hebb", t=[0, 1]), ("η = 1", "Hebbian rule")),
    "loss": (Risk(loss="hinge", alpha=[1, 2]), ("λ = 0.1", "hinge loss")),
    "tasks": (
        NetworkTasks(network="erf", tasks=2, switch=50, t=[0, 50, 60]),
        ("2 tasks", "switch at t = 50", "K = 2", "η = 1"),
    ),
}


@pytest.mark.parametrize(("scenario", "stated"), AT_DEFAULTS.values(), ids=AT_DEFAULTS)
def test_parameters_at_their_default_are_in_title_and_caption(scenario, stated):
    title = labels.plain_from_latex(", ".join(labels.describe_title_values(scenario)))
    assert [words for words in stated if words not in title] == []
    assert [words for words in stated if " = " in words and words not in parameters(scenario)] == []


@pytest.mark.parametrize("kind", SMALL)
def test_a_caption_defines_the_symbol_of_every_parameter(kind):
    scenario = SMALL[kind]
    text = "; ".join(["", *labels.define_symbols(scenario), ""])
    for name in labels.get_caption_keys(scenario).keys() - {"t"}:
        symbol = scenario.describe(name).label
        assert not symbol.startswith("$") or f"; {symbol}, " in text, name


def test_the_command_of_a_caption_reproduces_the_values_of_an_axis(tmp_path):
    changes = ["seeds=2", "alpha={geomspace: [0.1, 10, 5]}", "lam=0.123456789,best", "N=10"]
    results = Results(statmech.load("double_descent", changes), name="double_descent")
    text, latex = (file.read_text() for file in captions.write_caption(results, "double_descent", tmp_path / "it"))
    command = re.search(r"Command: `(.*)`", text)[1]
    assert "alpha='{geomspace: [0.1, 10, 5]}'" in command
    assert statmech.load(*shlex.split(command)[2:3], shlex.split(command)[3:]) == results.scenario
    assert r"alpha='\{geomspace: [0.1, 10, 5]\}'}" in latex


def test_parameters_of_what_learns_are_stated_at_their_default():
    text = parameters(StoredExamples(learner=["adatron", "hebb"], alpha=1))
    assert "ω = 1" in text
    assert "δ_κ" not in text  # of MinOver
    assert "momentum 0.9" in parameters(SMALL["descent"])


def test_a_parameter_of_an_own_rule_is_not_described_by_words_of_another_kind(monkeypatch):
    @dataclass(frozen=True)
    class Clipped(Hebb):
        cap: float = parameter(0.5, "largest step", above=0.0)

    monkeypatch.setitem(RULES, "clipped", Clipped)
    assert labels.format_key_and_value(Scenario(rule="clipped", t=1), "cap", 0.5) == "cap = 0.5"
    assert labels.format_key_and_value(SMALL["booster"], "cap", 3) == "at most 3 stages"


def test_an_absent_effect_is_in_the_caption_but_not_in_the_title():
    scenario = Risk(loss="hinge", alpha=[1, 2])
    assert "p_f = 0" in parameters(scenario)
    assert not any("p_f" in word for word in labels.describe_title_values(scenario))


def test_a_long_axis_is_stated_by_its_range_and_inputs_by_their_parameters():
    laws = [{"power_law": {"decay": 1.5, "teacher_decay": b}} for b in (1.5, 2.5)]
    text = parameters(Scenario(rule="hebb", inputs=laws, t=list(range(1, 11))))
    assert "t = 1 to 10 (10 values)" in text
    assert "inputs: power law (decay 1.5, teacher decay 1.5), power law (decay 1.5, teacher decay 2.5)" in text


def test_a_rate_that_is_a_power_is_one_of_the_dimension():
    rate = {"power": -0.5, "at_1": 2}
    scenario = FixedLengthNetwork(network={"hermite": 3}, length="fixed", eta=rate, until={"R": 0.5})
    assert "η = 2 N^-0.5" in parameters(scenario)


def test_a_caption_names_derived_variables_and_a_command_that_can_be_run():
    section = {
        "derive": {"gain": {"formula": "100 * (1 - eps_g_majority_vote / eps_g)", "symbol": "gain (%)"}},
        "panels": [{"x": "R", "y": "q"}, {"y": "gain", "guides": [{"y": 0}]}],
    }
    results = run(Scenario(rule="hebb", K=3, N=50, t=[1, 2], seeds=2, figure=section))
    text = captions.make_caption(results, results.scenario.figure)
    assert text.startswith("Online ensemble: (a) $q$ against $R$; (b) gain (%) against $t$ (steps / $N$). Rule")
    assert text.endswith("`statmech figure RESULTS`.")
    other = results.scenario.figure.model_copy(update={"series": ("K",)})
    assert captions.make_caption(results, other).endswith("`statmech figure RESULTS --series K`.")


def test_the_command_of_an_own_rule_loads_its_file_and_the_title_names_its_parameter(tmp_path, monkeypatch):
    path = tmp_path / "clipped_rules.py"
    path.write_text(
        "from dataclasses import dataclass\n"
        "from statmech.students.rules import Hebb, parameter\n"
        "@dataclass(frozen=True)\n"
        "class Clipped(Hebb):\n"
        '    cap: float = parameter(0.5, "largest step", above=0.0)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(RULES, "clipped", importlib.import_module("clipped_rules").Clipped)
    scenario = Scenario(rule=["clipped", "hebb"], K=3, N=20, t=[1, 2], seeds=2)
    assert {"cap = 0.5", "$K$ = 3"} <= {*labels.describe_title_values(scenario)}
    results = Results(scenario)
    assert captions.get_figure_command(results, "overlay").startswith("statmech --load clipped_rules.py ")
