"""A parameter has the type of its annotation, in this package and in a file of the user."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from test_statmech_cli import statmech

import simulate
import theory
from simulate.kinds.stored_examples import _make_rng_entropy
from statmech import LEARNERS, RULES, Attention, Rule, Scenario, ScenarioError, Stopping, StoredExamples, Study
from statmech.classification.classifiers import CLASSIFIERS, Classifier
from statmech.classification.stopping_boundaries import BOUNDARIES, Boundary, BrownianBridgeBoundary
from statmech.config import user_files
from statmech.keys.scenario import SCENARIOS
from statmech.kinds.selection_and_vocabulary import make_config_schema, scenario_from
from statmech.parameters.parameter_fields import (
    ConfigKey,
    collect_parameters,
    find_parameter_definitions,
    get_parameters,
    get_real_parameter_family,
    parameter,
)
from statmech.students.learners import MinOverLearner

pytestmark = pytest.mark.quick

MINE = """
from dataclasses import dataclass
from typing import Literal

import numpy as np

from simulate.learners.learner_interface import at_once, one_by_one
from statmech.students.learners import LEARNERS, Learner
from statmech.parameters.parameter_fields import parameter
from statmech.students.rules import RULES, Rule, get_array_module, step

@dataclass(frozen=True)
class Powered(Rule):
    label = "powered"
    power: int = parameter(2, "exponent of the stability", at_least=1, at_most=4, symbol="$n$")
    shape: str = parameter("hard", "what becomes of an error", choices={"hard": "all of it", "soft": "tanh"})
    kinks = (0.0,)

    def g(self, kappa, length):
        assert type(self.power) is int
        size = abs(kappa) ** self.power if self.shape == "hard" else get_array_module(kappa).tanh(-kappa) ** self.power
        return step(-kappa) * size

@dataclass(frozen=True)
class Repeated(Learner):
    label, limit = "Hebb, repeated", None
    times: int = parameter(2, "how often an example is learnt", at_least=1)
    which: Literal["all", "hardest"] = parameter("all", "examples that are repeated")

    def strengths(self, z):
        stabilities = z @ z.sum(axis=0)
        repeated = stabilities <= (np.inf if self.which == "all" else np.median(stabilities))
        return np.where(repeated, range(self.times + 1)[-1], 1.0)

    def learn(self, batch, task):
        x, exists = one_by_one(batch, self.strengths)
        return at_once(task.until, exists, strengths=x)

RULES["powered"] = Powered
LEARNERS["repeated"] = Repeated
"""


@pytest.fixture
def registries():
    """Entries that a test adds to the registries are removed after it."""
    before = [(registry, dict(registry)) for registry in (RULES, LEARNERS, BOUNDARIES, CLASSIFIERS)]
    yield
    for registry, kept in before:
        registry.clear()
        registry.update(kept)
    user_files._loaded_modules.clear()


@pytest.fixture
def mine(tmp_path, registries):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    user_files.load_plugin(file)
    return file


EVERY = {
    (choice, name): kind for choice, scenario in SCENARIOS.items() for name, kind in scenario.KINDS.items()
}  # all rules, learners, boundaries and classifiers


@pytest.mark.parametrize("named", EVERY, ids=" ".join)
def test_each_parameter_has_a_meaning_and_a_default_that_it_may_have(named):
    for key in get_parameters(EVERY[named]).values():
        assert key.meaning
        assert key.problem(key.default) is None
        assert type(key.default) is key.type


def test_an_impossible_type_is_an_error():
    for annotation in ("list", "str", "Unknown"):
        made = {"__annotations__": {"x": annotation}, "x": parameter("u", "a text")}
        kind = dataclass(frozen=True)(type("Odd", (), made))
        with pytest.raises(ScenarioError, match="the parameter x of Odd needs a type: float, int, bool, Literal"):
            get_parameters(kind)

    @dataclass(frozen=True)
    class Half:
        k: int = parameter(2.5, "a whole number")

    with pytest.raises(ScenarioError, match=r"default of the parameter k of Half: must be a whole number, not 2\.5"):
        get_parameters(Half)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (ConfigKey("x", above=0, below=1), 0, "must be greater than 0, not 0"),
        (ConfigKey("x", above=0, below=1), 1, "must be less than 1, not 1"),
        (ConfigKey("x", at_least=0, at_most=1), 1.5, "must be at most 1, not 1.5"),
        (ConfigKey("x", at_least=0, at_most=1), -1e-9, "must be at least 0, not -1e-09"),
        (ConfigKey("k", type=int, at_most=10**9), 2e9, "must be at most 1,000,000,000, not 2,000,000,000"),
        (ConfigKey("k", type=int), 2.5, "must be a whole number, not 2.5"),
        (ConfigKey("k", type=int), True, "must be a whole number, not true"),
        (ConfigKey("b", type=bool), 1, "must be true or false, not 1"),
        (ConfigKey("w", type=str, choices=("one",)), "on", '"on" is not a value of w. Did you mean "one"? Known: one.'),
    ],
)
def test_a_key_states_its_possible_values(key, value, message):
    assert key.problem(value) == message


@pytest.mark.parametrize(
    "key", [ConfigKey("x", at_least=0, at_most=1), ConfigKey("k", type=int, above=0), ConfigKey("y", above=0)]
)
def test_a_bound_is_closed_or_open_as_stated(key):
    lower, upper = (bound for bound in (key.lower, key.upper))
    assert (key.problem(lower) is None) == (key.at_least is not None)
    if np.isfinite(upper):
        assert key.problem(upper) is None


def test_whole_numbers_words_and_floats_read_from_a_config_are_those_of_the_class():
    [cell] = Study(classifier="attentive", data="votes", chunk=4, level="centred").cells()
    made = cell.classifier
    assert (made.chunk, made.level, made.chosen, made.error_rate) == (4, "centred", "random", 0.1)
    assert [type(value) for value in (made.chunk, made.error_rate, made.budget)] == [int, float, int]


def test_a_word_that_the_axes_name_is_always_stated_and_keeps_its_place():
    assert StoredExamples(learner=["minover", "hebb"], alpha=1).config()["stop"] == "epochs"
    swept = StoredExamples(learner="minover", alpha=[1, 2], within=[0.1, 0.01], stop=["epochs", "field-patience"])
    assert list(swept.shape) == ["stop", "within", "alpha"]
    given = {"level": ["constant", "centred"], "chosen": ["fixed", "random"], "passes": [1, 2]}
    study = Study(classifier=["attentive"], data="votes", **given)
    assert list(study.shape) == ["classifier", "level", "chosen", "passes"]
    assert study.config()["order"] == "every"


def test_a_stop_rule_does_not_change_the_random_numbers_of_a_run_and_other_parameters_do():
    def words(**given):
        scenario = StoredExamples(alpha=1, N=10, **given)
        return [_make_rng_entropy(scenario, cell, 0) for cell in scenario.cells()]

    [plain], patient = words(learner="minover"), words(learner="minover", stop=["epochs", "field-patience"])
    assert patient == [plain, plain]
    assert len({plain, *words(learner="minover", within=[0.1, 0.2])}) == 3
    assert words(learner="gibbs", sweeps=4000) == words(learner="gibbs") != words(learner="gibbs", sweeps=4001)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rule": "powered", "power": 2.5}, "power: must be a whole number, not 2.5"),
        ({"rule": "powered", "power": [1, 5]}, "power: must be at most 4, not 5"),
        ({"rule": "powered", "power": "two"}, 'power: must be a number, not "two"'),
        ({"rule": "powered", "shape": "sofd"}, 'shape: "sofd" is not a value of shape. Did you mean "soft"?'),
        ({"rule": "powered", "shape": ["hard", "sofd"]}, 'shape[1]: "sofd" is not a value of shape.'),
        ({"rule": "powered", "shape": 3}, "shape: must be a string, not 3"),
        (
            {"rule": ["hebb", "powered"], "shape": ["soft"]},
            'the rule "hebb" has no shape. It is a parameter of: powered.',
        ),
        ({"learner": "repeated", "which": "hard"}, 'which: "hard" is not a value of which. Did you mean "hardest"?'),
        ({"learner": "repeated", "times": 0}, "times: must be at least 1, not 0"),
        ({"learner": "repeated", "times": True}, "times: must be a number, not true"),
    ],
)
def test_an_error_in_a_parameter_of_the_user_is_named(mine, given, message):
    with pytest.raises(ScenarioError) as refused:
        scenario_from({**given, **({"t": 1} if "rule" in given else {"alpha": 1})})
    assert message in str(refused.value)


def test_a_parameter_cannot_have_the_name_of_a_key(registries):
    @dataclass(frozen=True)
    class Sized(MinOverLearner):
        N: int = parameter(3, "a number")

    LEARNERS["sized"] = Sized
    with pytest.raises(ScenarioError, match="N: is already a config key: rename the parameter of sized"):
        StoredExamples(learner="minover", alpha=1)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("n", "differs from N by case only"),  # a key
        ("T", "differs from t by case only"),
        ("Eps_g", "differs from eps_g by case only"),  # a variable
        ("EPSILON", "differs from epsilon by case only"),  # a parameter of another class
        ("State", "differs from state by case only"),  # a name of every store
        ("student", "is a name in the results"),
        ("R", "is a name in the results"),
    ],
)
def test_a_parameter_shares_its_name_with_nothing_in_the_results_not_even_but_for_case(name, problem, registries):
    values = {"__annotations__": {name: float}, name: parameter(1.0, "a number"), "__module__": __name__}
    RULES["named"] = dataclass(frozen=True)(type("Named", (Rule,), values))
    RULES["other"] = dataclass(frozen=True)(
        type("Other", (Rule,), {"__annotations__": {"epsilon": float}, "epsilon": parameter(1.0, "a number")})
    )
    with pytest.raises(ScenarioError) as refused:
        Scenario(rule="hebb", t=1)
    [(where, sentence)] = refused.value.problems
    assert where == (name,)
    assert sentence.startswith(problem)
    assert sentence.endswith("so the parameter of named needs another name")


def test_two_classes_cannot_give_one_name_to_a_number_and_a_word(registries):
    @dataclass(frozen=True)
    class Ordered(Classifier):
        label = "ordered"
        order: float = parameter(1.0, "an order")

    CLASSIFIERS["ordered"] = Ordered
    with pytest.raises(ScenarioError, match="order: is not of one type among perceptron, averaged, voted, ordered"):
        Study(classifier="ordered", data="votes", order=2.0)


def test_the_schema_knows_the_parameters_of_the_user(mine):
    rules, learners = (made["properties"] for made in make_config_schema()["anyOf"][:2])
    assert rules["rule"]["anyOf"][0]["enum"] == list(RULES)
    assert rules["power"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 4}
    assert rules["power"]["description"] == "exponent of the stability"
    assert rules["shape"]["anyOf"] == [
        {"enum": ["hard", "soft"]},
        {"type": "array", "items": {"enum": ["hard", "soft"]}, "minItems": 1},
    ]
    assert learners["which"]["anyOf"][0] == {"enum": ["all", "hardest"]}
    assert learners["times"]["default"] == 2
    assert learners["stop"]["anyOf"][0]["enum"] == ["epochs", "stability-patience", "field-patience"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["gram", "vectors"])
def test_simulation_and_theory_take_whole_numbers_and_words_of_a_rule(mine, engine):
    zipped = {"power": [1, 3], "shape": ["hard", "soft"]}
    scenario = Scenario(rule="powered", zip=zipped, t=[0.5, 1], seeds=64, N=300, engine=engine)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    assert simulation.shape.dims == simulation.power.dims == ("power_shape",)
    assert len(np.unique(solution.R.values.reshape(2, -1), axis=0)) == 2
    mean, error = simulation.R.mean("seed"), simulation.R.std("seed") / 8
    assert np.all(abs(mean - solution.R) < 5 * error + 3 / 300)
    assert scenario_from(json.loads(simulation.attrs["config"])) == scenario
    cells = list(scenario.cells())
    assert cells[0].identity_hash() != cells[1].identity_hash()
    assert "power = 3, shape = soft" in cells[1].message_description


def test_a_program_serves_all_real_parameters_and_one_word_each(mine):
    powered = RULES["powered"]
    assert get_real_parameter_family(powered(eta=2.0)) == get_real_parameter_family(powered())
    assert (
        get_real_parameter_family(powered(shape="soft"))
        != get_real_parameter_family(powered())
        != get_real_parameter_family(powered(power=3))
    )
    assert get_real_parameter_family(powered()).real_parameter_names == ["eta"]


def test_the_explorer_has_sliders_for_numbers_with_integer_steps_for_whole_ones(mine):
    from figures.explorer import settings

    assert {"power", "times"} <= {*settings.list_slider_keys("rule"), *settings.list_slider_keys("learner")}
    assert not {"shape", "which", "stop"} & {*settings.list_slider_keys("rule"), *settings.list_slider_keys("learner")}
    assert settings.get_slider_range("rule", "power") == (1, 4, 1)


def test_simulation_takes_whole_numbers_and_words_of_a_learner(mine):
    given = {"N": 30, "alpha": 3, "seeds": 20, "epochs": 1}
    found = simulate.run(StoredExamples(learner="repeated", times=[1, 2], which=["all", "hardest"], **given)).eps_g
    hebb = simulate.run(StoredExamples(learner="hebb", **given)).eps_g
    for times, which in itertools.product([1, 2], ["all", "hardest"]):
        same = np.allclose(found.sel(times=times, which=which), hebb, rtol=1e-12)
        assert same == (times == 1 or which == "all"), (times, which)


@pytest.mark.slow
def test_the_command_takes_parameters_of_a_file_of_the_user(mine, in_scratch):
    keys = ["rule=powered", "power=1,2", "shape=soft", "K=1", "N=50", "t=1,2", "seeds=4"]
    done = statmech("--load", str(mine), "run", "variety", *keys)
    assert done.returncode == 0, done.stderr
    refused = statmech("--load", str(mine), "run", "variety", *keys, "shape=sofd", "--out", "other")
    assert refused.returncode == 2
    assert 'shape: "sofd" is not a value of shape. Did you mean "soft"?' in " ".join(refused.stderr.split())


@dataclass(frozen=True)
class Scaled(Boundary):
    """The level of the Brownian bridge times a factor, increased by the modulus of the mean."""

    label = "scaled"
    equation = r"\tau = f\,\tau_{bridge}"
    factor: float = parameter(1.0, "factor on the bridge's level", symbol="$f$", above=0)

    def stopping_level(self, error_rate, mean, variance, theta):
        return self.factor * BrownianBridgeBoundary().stopping_level(error_rate, mean, variance, theta)


def test_a_new_boundary_is_one_class_and_one_line(registries):
    BOUNDARIES["scaled"] = Scaled
    walks = Stopping(boundary=["brownian-bridge", "scaled"], error_rate=0.1, N=64, walks=4000, seeds=8)
    simulation, solution = simulate.run(walks), theory.solve(walks)
    assert np.all(simulation.decision_error[0] == simulation.decision_error[1])
    higher = Stopping(boundary="scaled", factor=[0.7, 1.4], error_rate=0.1, N=64, walks=4000, seeds=8)
    simulation, solution = simulate.run(higher), theory.solve(higher)
    assert simulation.features.dims == ("factor", "seed")
    assert float(simulation.features[0].mean()) < float(simulation.features[1].mean())
    for name in ("features", "decision_error"):
        error = simulation[name].std("seed") / np.sqrt(8)
        assert np.all(abs(simulation[name].mean("seed") - solution[name]) < 5 * error)
    online = {"error_rate": 0.1, "N": 100, "chunk": 4, "t": [0.5, 1]}
    same = Attention(attention=["brownian-bridge", "scaled"], **online, seeds=2)
    for dataset in (simulate.run(same), theory.solve(same)):
        assert np.array_equal(dataset.features[0], dataset.features[1])
    lower = Attention(attention="scaled", factor=[0.5, 1], **online, seeds=4)
    for dataset in (simulate.run(lower), theory.solve(lower)):
        features = dataset.features.mean([name for name in dataset.features.dims if name != "factor"])
        assert float(features[0]) < float(features[1])
    assert Stopping.get_equation("scaled") == Scaled.equation
    with pytest.raises(ScenarioError, match=r'the boundary "constant" has no factor\. It is a parameter of: scaled'):
        Stopping(boundary="constant", factor=2, error_rate=0.1)


def test_a_new_classifier_of_a_file_is_one_class_and_one_line(registries, data_folder):
    from sklearn.dummy import DummyClassifier

    @dataclass(frozen=True)
    class Guess(Classifier):
        label = "guess"
        strategy: Literal["prior", "uniform"] = parameter("prior", "how it guesses")

        def make(self, task):
            return DummyClassifier(strategy=self.strategy, random_state=task.random)

    CLASSIFIERS["guess"] = Guess
    study = Study(classifier="guess", strategy=["prior", "uniform"], data="votes", folds=4, seeds=1)
    found = simulate.run(study)
    assert found.accuracy.dims == ("strategy", "seed", "fold")
    assert np.isnan(found.nonzero_weights).all()
    assert np.isfinite(found.accuracy).all()


def test_a_parameter_is_described_for_each_class_that_has_it():
    assert {name: key.default for name, key in find_parameter_definitions(LEARNERS, "sweeps").items()} == {
        "gibbs": 4000,
        "bayes": 20_000,
    }
    assert collect_parameters(LEARNERS)["stop"].choices == get_parameters(MinOverLearner())["stop"].choices


def test_a_parameter_of_an_earlier_version_is_still_a_whole_number():
    @dataclass(frozen=True)
    class Old:
        depth: float = parameter(3, "layers", above=0, whole=True)

    key = get_parameters(Old)["depth"]
    assert key.whole
    assert key.problem(2.5) == "must be a whole number, not 2.5"
    assert key.problem(2.0) is None
