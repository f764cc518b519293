"""Any config file gives a scenario that survives a round trip, or messages with file and line."""

from __future__ import annotations

import json
import math
import re
from collections import Counter

import numpy as np
import pytest
import small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from statmech import Scenario
from statmech.config.config_files import SHIPPED_CONFIG_FOLDER, format_config, list_shipped_configs, load
from statmech.config.shipped_configs import read_shipped_config
from statmech.errors import ConfigError, format_unknown_name
from statmech.keys.scenario import SCENARIOS, get_kinds
from statmech.kinds.selection_and_vocabulary import get_kind_name, scenario_from
from statmech.stores.sweep_cost import estimate_cost

EXAMPLES = 100  # configs of each kind; `test_statmech_drawn_inputs.py` draws from the schema
ODD = [
    *(
        "1e-3",
        "1e400",
        "-1e-400",
        ".nan",
        ".inf",
        "-.inf",
        "no",
        "yes",
        "~",
        "12:30",
        "0x10",
        "0o17",
        "1_000",
        "+1",
        "1.",
    ),
    *(
        "2026-01-01",
        "2001-12-14t21:59:43Z",
        "''",
        '" "',
        "'3'",
        "-0.0",
        "9" * 30,
        "1" + "0" * 400,
        "-1",
        "0",
        "0.5",
        "2",
    ),
    *(
        "[]",
        "{}",
        "[[]]",
        "[[1, 2], [3]]",
        "[1, 1]",
        "[1, 1.0]",
        "[0.1, 0.2]",
        "[1, [2]]",
        "[null]",
        "[~, 1]",
        "[.nan, .nan]",
    ),
    *("{a: 1}", "{linspace: [0, 1, 3]}", "{linspace: [1, 2]}", "{geomspace: [0, 1, 5]}", "{logspace: [1, 400, 3]}"),
    *(
        "{linspace: [0, 1, 1e9]}",
        "{linspace: [.nan, 1, 3]}",
        "{linspace: x}",
        "{linspace: [1, 9, 3], geomspace: [1, 2, 3]}",
    ),
    *(
        "&a [1, *a]",
        "&a {b: *a}",
        "*nowhere",
        "!!python/object:os.system x",
        "!!set {a}",
        "!!binary aGk=",
        "!!str 3",
        "!x 3",
    ),
    *(
        "|\n  text",
        ">-\n  text",
        "@x",
        "`",
        "%",
        "[1, 2",
        "{a",
        "'",
        '"',
        "\t1",
        "a: b",
        "- 1",
        "? x",
        "é",
        "\x07",
        "<<",
    ),
    *(
        "hebb",
        "[hebb, adatron]",
        "drawn",
        "gaussian",
        "{rows: {path: nowhere.csv}}",
        "{anisotropic: {spectrum: [1, x]}}",
    ),
    *(
        "{R: 0.5, q: 0.5}",
        "{R: [0.1, 2]}",
        "true",
        "[true, 1]",
        "constant",
        "votes",
        "[clouds, clouds]",
        "{1: 2}",
        "{[1]: 2}",
    ),
]
FAIR = {
    "N": ["20", "[20, 30]", "{linspace: [20, 40, 3]}", "1_000"],
    "seeds": ["3", "0x10"],
    "key": ["7"],
    "figure": ["overlay", "{fit: true}"],
    "flip": ["0.1", "[0, 0.5]", "{linspace: [0, 0.3, 4]}"],
    "alpha": ["1", "{geomspace: [0.5, 2, 3]}", "1e0"],
    "eta": ["0.5", "[1e-3, 2]"],
    "error_rate": ["1e-2", "[0.1, 0.2]"],
    "t": ["[0, 1]", "2.5", "{logspace: [-1, 1, 3]}"],
    "epochs": ["5", "[1, 2.5]"],
    "K": ["2", "[1, 3]"],
    "inputs": ["sphere", "[gaussian, {anisotropic: {spectrum: [0.5, 1.5]}}]"],
    "start": ["{R: 0.1}", "drawn"],
    "mean": ["0", "[-1, 1]"],
    "theta": ["0.1"],
    "chunk": ["2", "[1, 4]"],
    "s": ["3", "[1, 5]"],
    "P": ["50", "{linspace: [20, 60, 3]}"],
    "folds": ["3"],
    "stages": ["4"],
    "examples": ["40"],
}
LINES = [
    "rule: hebb\nrule: hebb\n",
    "<<: {seeds: 3}\n",
    "zip: {alpha: [1, 2], flip: [0.1]}\n",
    "zip: {N: [20, 30], error_rate: [0.1, 0.2]}\n",
    "zip: [{N: [20, 30], flip: [0, 0.1]}, 3]\n",
    "zip: {seeds: [1, 2], N: [20, 30]}\n",
    "zip: {N: 3}\n",
    "zip: []\n",
    "zip:\n",
    "---\nrule: hebb\n",
    "3: 4\n",
    "[1]: 4\n",
    "\ttabbed: 1\n",
    "seeds 3\n",
    "%YAML 9.9\n",
    "...\n",
    "parameters: {eta: 1}\n",
    "zipped: [[N, flip]]\n",
    "\ufeff\n",
]


DOCUMENTS = [
    YAML(typ="safe", pure=True).load(SHIPPED_CONFIG_FOLDER / f"{name}.yaml") for name in list_shipped_configs()
]
NAMED = {*map(get_kind_name, DOCUMENTS)}
DOCUMENTS += [sweep.config() for kind, sweep in small.SMALL.items() if kind not in NAMED]
BASES = {  # the shipped configs of every kind, else a small sweep, as mappings of keys to YAML text
    kind: [
        {key: json.dumps(value) for key, value in document.items()}
        for document in DOCUMENTS
        if get_kind_name(document) == kind
    ]
    for kind in get_kinds()
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule: hebb\nt: 1\nparameters: {eta: 2}\n", ':3: parameters: "parameters" is not a key of a config'),
        ("rule: hebb\nt: 1\nzipped: [[N, flip]]\n", ':3: zipped: "zipped" is not a key of a config'),
        ("rule: hebb\n%YAML 9.9\nt: 1\n", ": not readable as YAML: KeyError: (9, 9)"),
        ('rule: "\\uda9f"\nt: 1\n', r':1: rule: "\uda9f" is not a learning rule'),
        ("rule: |\n  adatron\n  x\nt: 1\n", ':1: rule: "adatron x" is not a learning rule. Did you mean "adatron"?'),
        ("rule: hebb\nt: 1\nseeds: {[1]: 2}\n", ":3: seeds: must be a whole number, not {"),
        (
            "descent: gradient\nloss: square\nalpha: 1\nbatch: 5e-324\n",
            ":4: batch: sampling shuffle needs a batch of 1/2, 1/3, ...: 4.94066e-324 does not divide the examples",
        ),
        ("learner: [[]]\nalpha: 1\n", ":1: learner[0]: must be a string, not []"),
    ],
)
def test_errors_found_by_generated_configs_are_messages(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert str(refused.value).startswith(f"{path}{message}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("loss: square\nlambda: 0.1\nalpha: 1\n", 'Did you mean "lam"?'),
        ("loss: svm\nalpha: 1\n", 'Did you mean "hinge"?'),
        ("loss: square\npenalty: lasso\nalpha: 1\n", 'Did you mean "l1"?'),
        ("prior: Ising\nalpha: 1\n", 'Did you mean "binary"?'),
        ("learner: logistic\nalpha: 1\n", "write loss: logistic, without the key learner"),
        ("learner: svm\nalpha: 1\n", "write loss: hinge, without the key learner"),
        ("network: erf\nflip: 0.1\nt: 1\n", 'Did you mean "noise", the noise of the output?'),
        ("network: erf\nteacher: relu\nt: 1\n", "is written teacher: {network: relu}"),
        ("network: erf\nM: 2\nK: 3\nstart: {v: [1, 1]}\nt: 1\n", "v has 2 values, but K = 3 units need 3"),
        ("learner: [svm, hebb, logistic]\nalpha: 1\n", "write loss: [hinge, logistic], without the key learner"),
        ("loss: ridge\nalpha: 1\n", 'Did you mean "square" with penalty: l2?'),
        ("rule: hebb\neta: 1/t\nt: 1\n", "is written schedule: {t0: 5}, for a learning rate of eta / (1 + t/t0)"),
        ("rule: hebb\neta: {schedule: 1/t}\nt: 1\n", "is written schedule: {t0: 5}, for a learning rate"),
        (
            "rule: hebb\nschedule: 5\nt: 1\n",
            "must be written schedule: {t0: 5}, for a learning rate of eta / (1 + t/t0), not 5",
        ),
        ("rule: hebb\nschedule: [2, 5]\nt: 1\n", "must be written schedule: {t0: 5}, for a learning rate"),
        ("rule: hebb\ncorrections: yes\nt: 1\n", 'corrections: must be true or false, not "yes"'),
    ],
)
def test_words_of_books_and_other_programs_are_answered_with_those_of_a_config(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


FIVE = "rule: [hebb, adtron]\nruel: 3\nN: -1\neta: -1\nK: x\nflip: 0.9\nt: [3, 1]\nstart: {R: 2}\n"


def refusal(path, text, *overrides) -> list[str]:
    """The lines that a config is refused with, without the name of its file."""
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(path, overrides)
    return str(refused.value).replace(f"{path}:", "").splitlines()


def test_all_faults_of_a_config_are_named_at_once_in_the_order_of_its_lines(tmp_path):
    lines = refusal(tmp_path / "bad.yaml", FIVE)
    assert [line.partition(": ")[0] for line in lines] == ["1", "2", "3", "4", "5", "6", "7", "8"]
    assert lines[3] == "4: eta: must be greater than 0, not -1"
    assert lines[6] == "7: t: times must increase"


def test_a_fault_is_named_only_if_it_stays_when_the_others_are_corrected(tmp_path):
    path = tmp_path / "bad.yaml"
    assert len(refusal(path, "rule: hebb\nt: 1\nK: 2000\nN: x\n")) == 1  # N may become large enough
    assert len(refusal(path, "rule: adtron\nt: 1\nmargin: -1\n")) == 1  # the rule may have no margin
    assert len(refusal(path, "rule: hebb\nt: 1\nK: 20\nN: 10\nflip: x\n")) == 2
    assert len(refusal(path, "rule: hebb\nt: 1\nzip: {K: [20, 2], N: [x, 10]}\n")) == 1
    [line] = refusal(path, "teacher: sign\nalpha: 1\nwidth: [0.1, 0.2]\n")
    assert line.startswith(" loss: is missing, and has no default: one of square, ")
    lines = refusal(path, "rule: hebb\nT: 1\nK: 20\nN: 10\nzip: {eta: [1, 2], flip: [0]}\n")
    assert [line[:6] for line in lines] == ["2: T: ", "4: N: ", "5: zip", " t: is"]  # a missing key has no line


@pytest.mark.parametrize("kind", get_kinds())
def test_a_second_fault_does_not_hide_the_first(kind, tmp_path):
    for config in BASES[kind][:1]:
        text = "".join(f"{key}: {value}\n" for key, value in {**config, "seeds": "x", "ruel": 1}.items())
        lines = refusal(tmp_path / "bad.yaml", text, "key=-1")
        assert len(lines) == 3
        assert lines[-1] == "key=-1: key: must be at least 0, not -1"


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("1..5", [1, 2, 3, 4, 5]),
        ("1:5", [1, 2, 3, 4, 5]),
        ("1-3", [1, 2, 3]),
        ("2..8..2", [2, 4, 6, 8]),
        ("2:9:3", [2, 5, 8]),
        ("10_000:30_000:10_000", [10_000, 20_000, 30_000]),
        ("5..3", [5, 4, 3]),
    ],
)
def test_a_range_is_answered_with_the_axis_that_it_means(given, values, tmp_path):
    path = tmp_path / "range.yaml"
    [line] = refusal(path, f"rule: hebb\nt: 1\nK: {given}\n")
    axis = line.partition("A range is written ")[2]
    read = load("ensemble", [f"K={axis}", "N=100_000"]).axis_values()["K"]
    assert read == tuple(values)
    [line] = refusal(path, "rule: hebb\nt: 1\n", f"K={given}")
    assert line.endswith(f"A range is written 'K={axis}'")


def test_a_range_of_numbers_keeps_its_decimals(tmp_path):
    [line] = refusal(tmp_path / "range.yaml", "rule: hebb\nt: 1\neta: 0.1:1:0.1\n")
    assert line == '3: eta: must be a number, not "0.1:1:0.1". A range is written {linspace: [0.1, 1, 10]}'
    assert load("ensemble", ["eta={linspace: [0.1, 1, 10]}"]).parameters["eta"] == pytest.approx(np.arange(1, 11) / 10)
    [line] = refusal(tmp_path / "range.yaml", "rule: hebb\nt: 1\neta: 0.2..0.5\n")
    assert line.endswith("{linspace: [0.2, 0.5, 4]}")


@pytest.mark.parametrize("given", ["many", "1..", "1..1", "1:0:1", "1:5:0", "0..1e9", "12:30:45:60", "-", "..", ":"])
def test_what_is_not_a_range_is_not_answered_with_one(given, tmp_path):
    assert "linspace" not in "".join(refusal(tmp_path / "range.yaml", f'rule: hebb\nt: 1\neta: "{given}"\n'))


def test_a_list_in_other_brackets_is_answered_with_a_list(tmp_path):
    [line] = refusal(tmp_path / "list.yaml", "rule: hebb\nt: 1\neta: (0.5, 1)\n")
    assert line.endswith("A list is written [0.5, 1]")


YAML_MISTAKES = {  # where the mistake is, not where the parser stops
    "rule: hebb\nstart:\n\tR: 0.5\nt: 1\n": "3: a tab; YAML is indented and separated by spaces",
    "rule: hebb\nt: [1, 2\nseeds: 3\n\n": "2: the bracket [ is not closed: ] is missing",
    "rule: hebb\nstart: {R: 0.5\nt: 1\n": "2: the bracket { is not closed: } is missing",
    "rule: hebb\nt: {linspace: [1, 2, 3}\n": "2: the bracket [ is closed by } instead of ]",
    "rule: hebb\nt: [1, 2]]\n": "2: more text where a value has ended: ]",
    "rule:hebb\nt: 1\n": "1: a space is missing after the colon: rule: hebb",
    "rule: hebb\nt:1\nseeds: 3\n": "2: a space is missing after the colon: t: 1",
    "rule:hebb\nt:1\n": "1: a space is missing after the colon: rule: hebb",
    "rule: hebb\nt: 1\nstart: {R:0.5}\n": "3: start.R:0.5: a space is missing after the colon: R: 0.5",
    "rule: hebb: x\nt: 1\n": '1: a value contains a second colon; put it in quotes: rule: "hebb: x"',
    "rule: hebb\n  t: 1\n": "2: indented further than the line above, which has a value already: t: 1",
    "  rule: hebb\nt: 1\n": "2: not indented like the keys above: t: 1",
    "rule: hebb\nstart:\n    R: 0.5\n  q: 0.2\nt: 1\n": "4: not indented like the keys above: q: 0.2",
    "rule: hebb\nseeds 3\nt: 1\n": '2: "seeds 3" is not `key: value`: the colon is missing',
    "rule = hebb\n# ok\nt: 1\n": '1: "rule = hebb" is not `key: value`: the colon is missing',
    "rule: hebb\nt: 1\ninputs: 'a\nseeds: 2\n": "3: the quote ' is not closed",
    "rule: hebb\n\nt: 1\nt: 2\n": '4: "t" is given twice',
    "rule: @x\nt: 1\n": "1: a value cannot begin with @; put it in quotes",
    "rule: *x\nt: 1\n": "1: *x repeats a value that no &x has named; put it in quotes if it is a text",
    "rule: hebb\n- 1\nt: 1\n": "2: a list item and a key side by side: - 1",
    "rule: hebb\nt: 1\n---\nrule: x\n": "3: a second document begins (---): a config must be a single document",
    "rule: hebb\nt: \x07\n": "2: contains the control character U+0007",
}


@pytest.mark.parametrize(("text", "message"), YAML_MISTAKES.items())
def test_a_mistake_in_yaml_is_a_sentence_with_the_line_where_it_is(text, message, tmp_path):
    assert refusal(tmp_path / "bad.yaml", text) == [message]


def test_bytes_that_are_not_text_are_a_sentence_with_a_line(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_bytes("# erstes\nrule: hébb\n".encode("latin1"))
    with pytest.raises(ConfigError, match=r"bad.yaml:2: the byte 0xe9 is not UTF-8"):
        load(path)


def test_a_distant_name_is_not_suggested():
    assert "Did you mean" not in format_unknown_name("gamma", "a key of a config", SCENARIOS["rule"].list_keys())
    for typed, meant in {"Kk": "K", "ruel": "rule", "ete": "eta", "seed": "seeds", "T": "t", "flips": "flip"}.items():
        assert f'Did you mean "{meant}"?' in format_unknown_name(typed, "a key", SCENARIOS["rule"].list_keys())


def test_every_shipped_config_has_a_description_of_one_line():
    for name in list_shipped_configs():
        assert 20 < len(read_shipped_config(name).figure.title) < 130, name


@pytest.mark.parametrize(
    ("given", "programs"),
    [
        ({"rule": "hebb", "K": 3, "eta": [0.5, 1], "N": [100, 200]}, 2),  # the engine's and the equations'
        ({"rule": ["hebb", "adatron"], "K": [1, 3, 5]}, 7),
        ({"rule": ["hebb", "adatron"], "K": 3, "N": [100, 200], "engine": "vectors"}, 5),
        ({"rule": "hebb", "K": [2, 3], "start": {"R": 0.1}}, 3),
        ({"rule": "hebb", "zip": [{"K": [1, 3], "N": [100, 200]}]}, 3),
    ],
)
def test_an_estimate_counts_the_programs_that_are_compiled(given, programs):
    assert estimate_cost(Scenario(t=1, **given)).programs == programs


SMALL = st.integers(1, 40).map(str) | st.floats(0.001, 2).map(str) | st.lists(st.floats(0, 5), max_size=4).map(str)
CHARACTERS = st.characters(exclude_categories=["Cs"])  # those of UTF-8, which take Hypothesis five seconds to list
WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS, max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(CHARACTERS, max_size=4), inner, max_size=3),
    max_leaves=8,
).map(lambda value: re.sub(r"\b(NaN|-?Infinity)\b", ".nan", json.dumps(value)))


@st.composite
def texts(draw, kind):
    """A shipped config of a kind, with some keys changed, removed or invented."""
    config = dict(draw(st.sampled_from(BASES[kind])))
    keys = get_kinds()[kind].list_keys()
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(keys) | st.sampled_from([*config, "Kk", "ruel", "é", "''", "start", "rule"]))
        if draw(st.integers(0, 9)) == 0:
            config.pop(name, None)
        elif draw(st.booleans()):
            name = draw(st.sampled_from([name for name in FAIR if name in keys]))
            config[name] = draw(st.sampled_from(FAIR[name]))
        else:
            config[name] = draw(st.sampled_from(ODD) | SMALL | WILD)
    lines = [f"{name}: {value}\n" for name, value in config.items()]
    if draw(st.integers(0, 5)) == 0:
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(LINES)))
    return "".join(lines)


def outcome(path):
    """True if a config is valid; both cases are checked."""
    try:
        scenario = load(path)
    except ConfigError as refused:
        for line in str(refused).splitlines():
            assert line.startswith(str(path)), line
            assert len(line) < 1000
        return "named line" if re.match(rf"{re.escape(str(path))}:\d+: .", str(refused)) else "named file"
    again = scenario_from(json.loads(json.dumps(scenario.config())))
    assert again == scenario
    assert again.config() == scenario.config()
    cost = estimate_cost(scenario)
    assert all(math.isfinite(number) and number >= 0 for number in cost)
    assert cost.runs == scenario.seeds * math.prod(scenario.shape.values())
    return "valid"


@pytest.mark.slow
@pytest.mark.parametrize("kind", get_kinds())
def test_any_config_is_a_scenario_or_a_message_and_nothing_is_written(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, seen = tmp_path / "any.yaml", Counter()

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(texts(kind))
    def check(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        seen[outcome(path)] += 1

    check()
    assert [file.name for file in tmp_path.iterdir()] == ["any.yaml"]
    assert seen["valid"] > EXAMPLES / 10
    assert seen["named line"] > EXAMPLES / 10


@pytest.mark.slow
@pytest.mark.parametrize("override", ["lam=" + "1" * 400, "lam=" + "a" * 10**6, "[" * 10**4, "lam=[" + "1," * 10**4])
def test_a_long_override_is_not_repeated_in_full(override):
    with pytest.raises(ConfigError) as refused:
        load("best_lambda", [override])
    assert len(str(refused.value)) < 700


def test_another_learner_leaves_behind_the_parameters_of_those_in_the_file():
    """omega and tolerance of the file belong to adatron; one that is typed is still refused."""
    assert {"omega", "tolerance"}.isdisjoint(load("stored_curves", ["learner=gibbs"]).parameters)
    assert "omega" in load("stored_curves", ["learner=gibbs,adatron"]).parameters
    with pytest.raises(ConfigError, match='"gibbs" has no omega'):
        load("stored_curves", ["learner=gibbs", "omega=1.2"])


def test_an_override_of_the_teacher_leaves_a_unit_that_is_a_section():
    """best_search_rate has the section network: {hermite: 3}."""
    scenario = load("best_search_rate", ["teacher=sign", "w=-1"])
    assert (scenario.network, scenario.parameters["degree"], scenario.teacher) == ("hermite", 3, "sign")
    with pytest.raises(ConfigError, match=r'teacher=wegde: teacher: "wegde" is not a teacher. Did you mean "wedge"'):
        load("best_search_rate", ["teacher=wegde"])


@pytest.mark.parametrize(
    ("given", "belongs"),
    [
        ("lambda=0.1", "it is written lam, which belongs to configs with `loss`, `descent`, `clusters`, `population`."),
        ("momentum=0.5", "it belongs to configs with `descent`."),
        ("heads=shared", "it belongs to configs with `network` and `tasks`."),
    ],
)
def test_a_key_of_another_kind_of_config_is_answered_with_the_kinds_that_have_it(given, belongs):
    with pytest.raises(ConfigError) as refused:
        load("ensemble", [given])
    assert f"is not a key of this config: {belongs}" in str(refused.value)
    assert "Known:" not in str(refused.value)


def test_after_a_likely_name_a_long_list_of_names_is_left_out():
    with pytest.raises(ConfigError, match=r'Did you mean "ensemble"\?$'):
        load("ensembel")
    with pytest.raises(ConfigError, match=r"`statmech configs` lists them"):
        load("nonsuch")


def test_a_value_of_a_key_is_not_mistaken_for_a_former_name(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("loss: logistic\nalpha: 2\ndelta: 2\n")
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert '"delta" is not a key of' in str(refused.value)
    assert "is called" not in str(refused.value)


@pytest.mark.parametrize(
    ("config", "given", "answer"),
    [
        ("clusters", "delta=2", 'Did you mean "distance", the distance between the centres of two clusters?'),
        ("stored_curves", "learner=hebb,adatron omega=1,1.5", 'Sweep omega without "hebb", or give one value.'),
    ],
)
def test_a_likely_name_and_a_parameter_of_one_class_are_answered_with_a_remedy(config, given, answer):
    with pytest.raises(ConfigError) as refused:
        load(config, given.split())
    assert answer in str(refused.value)


def test_a_long_section_is_written_with_a_line_for_each_key_and_read_back(tmp_path):
    scenario, path = load("early_stopping"), tmp_path / "again.yaml"
    path.write_text(format_config(scenario))
    assert '\n  split: "alpha"\n' in path.read_text()
    assert load(str(path)).config() == scenario.config()
