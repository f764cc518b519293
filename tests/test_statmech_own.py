"""A rule or an activation in a file of the user is like any other, and an invalid one is reported at once."""

from __future__ import annotations

import pytest
from test_statmech_cli import statmech

from statmech import ACTIVATIONS, RULES, Activation, ConfigError
from statmech.config import user_class_checks, user_files
from statmech.students.activations import GAUSSIAN_AVERAGE_METHODS

MINE = """
from dataclasses import dataclass
from statmech.students.rules import RULES, Rule, parameter, step

@dataclass(frozen=True)
class Cautious(Rule):
    label = "cautious"
    depth: float = parameter(1.0, "stability below which an example is given up", above=0.0)
    kinks = property(lambda self: (-self.depth, 0.0))

    def g(self, kappa, length):
        return step(-kappa) * step(kappa + self.depth)

RULES["cautious"] = Cautious
"""
LEAKY = """
from dataclasses import dataclass
from statmech.students.activations import ACTIVATIONS, Activation
from statmech.numerics.gaussian import get_array_module, step
from statmech.parameters.parameter_fields import parameter

@dataclass(frozen=True)
class Leaky(Activation):
    label = "leaky ReLU"
    leak: float = parameter(0.1, "slope at negative fields")
    kinks = (0.0,)

    def both(self, x):
        slope = self.leak + (1 - self.leak) * step(x)
        return slope * x, slope

ACTIVATIONS["leaky"] = Leaky
"""
SMALL = ["rule=cautious", "depth=0.5,1", "K=3", "N=50", "t=1,2", "seeds=4"]


@pytest.fixture
def mine(tmp_path):
    """A function that writes the file with changes; the rules it adds are removed after the test."""
    before = [(registry, dict(registry)) for registry in (RULES, ACTIVATIONS)]

    def written(old="", new="", content=MINE):
        assert old in content
        file = tmp_path / "mine.py"
        file.write_text(content.replace(old, new, 1))
        return file

    yield written
    for registry, known in before:
        registry.clear()
        registry.update(known)
    user_files._loaded_modules.clear()


@pytest.mark.slow
def test_the_command_simulates_solves_and_draws_a_rule_from_a_file(mine, in_scratch):
    done = statmech("--load", str(mine()), "run", "variety", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "depth" in done.stdout
    assert (in_scratch / "results" / "variety" / "variety.png").exists()
    process = statmech("compare", "variety", *SMALL)
    assert process.returncode == 2
    assert '"cautious" is not a learning rule' in process.stderr
    process = statmech("figure", "results/variety")
    assert process.returncode == 2
    assert process.stderr.endswith("which is not loaded: load it as in `statmech --load mine.py figure`\n")


def test_child_processes_load_the_files_that_their_parent_has_run(mine):
    file = mine()
    user_files.load_plugin(file)
    user_files.load_plugin(file)  # once per process
    assert user_files.list_loaded_plugin_files() == [str(file)]
    assert user_files.make_child_environment()[user_files.PLUGIN_FILES_ENV_VARIABLE] == str(file)


def test_the_environment_names_files_for_every_command(mine, monkeypatch):
    monkeypatch.setenv(user_files.PLUGIN_FILES_ENV_VARIABLE, str(mine()))
    user_files.load_plugins_from_environment()
    assert "cautious" in RULES


WRONG = {
    ("@dataclass(frozen=True)", ""): "has parameters: decorate it with @dataclass",
    ('label = "cautious"', ""): "no attribute 'label'",
    ("(-self.depth, 0.0)", "(0.0,)"): "g jumps at stability -1, which is not among its kinks",
    ("return step(-kappa)", "return step(-kapa)"): "'kapa' is not defined",
    ("return step(-kappa)", "import numpy; return numpy.tanh(kappa)"): "get_array_module.kappa..tanh",
    ("return step(-kappa)", "return 1.0 if kappa < 0 else 0.0"): "write step.-kappa. for",
    ("class Cautious(Rule):", "class Cautious(Rule:"): r"mine.py:6: SyntaxError",
    ("step\n\n@", "stap\n\n@"): r"mine.py:3: ImportError",
}


@pytest.mark.parametrize("change", WRONG, ids=WRONG.values())
def test_an_error_in_a_rule_is_reported_before_anything_is_computed(mine, change):
    with pytest.raises(ConfigError, match=WRONG[change]):
        user_files.load_plugin(mine(*change))


def test_a_file_that_is_missing_or_not_python_is_reported(tmp_path):
    with pytest.raises(ConfigError, match="no such Python file"):
        user_files.load_plugin(tmp_path / "nothing.py")
    (tmp_path / "rules.txt").write_text("")
    with pytest.raises(ConfigError, match="must end in"):
        user_files.load_plugin(tmp_path / "rules.txt")


@pytest.mark.parametrize("name", list(RULES))
def test_the_rules_of_this_package_pass_their_own_check(name):
    user_class_checks.check_plugin_rule(name)


def test_an_activation_in_a_file_is_known_like_any_other(mine):
    user_files.load_plugin(mine(content=LEAKY))
    assert isinstance(ACTIVATIONS["leaky"](leak=0.2), Activation)


WRONG_ACTIVATION = {
    ("@dataclass(frozen=True)", ""): "has parameters: decorate it with @dataclass",
    ('label = "leaky ReLU"', ""): "no attribute 'label'",
    ("kinks = (0.0,)", ""): r"g bends at field \S+, which is not among its kinks",
    ("kinks = (0.0,)", "kinks = (1.0,)"): r"g bends at field \S+, which is not among its kinks",
    ("return slope * x, slope", "return slope * x + step(x - 2), slope"): "g jumps at field 2, which is not among its",
    ("return slope * x, slope", "return slope * x, 1.01 * slope"): "is not the derivative of g at field",
    ("return slope * x, slope", "return x * x, 0 * x"): "is not the derivative of g at field",
    ("return slope * x, slope", "return slope * x"): "both.x. must return two arrays of the shape of x",
    ("return slope * x, slope", "return slope * x, 1.0"): "both.x. must return two arrays of the shape of x",
    ("return slope * x, slope", "import numpy; return numpy.tanh(x), x"): "get_array_module.x..tanh",
    (
        "return slope * x, slope",
        "return (x, 1 + 0 * x) if x > 0 else (0 * x, 0 * x)",
    ): "fields are arrays, .* write step.-x. for",
}


@pytest.mark.parametrize("change", WRONG_ACTIVATION, ids=WRONG_ACTIVATION.values())
def test_an_error_in_an_activation_is_reported_before_anything_is_computed(mine, change):
    with pytest.raises(ConfigError, match=WRONG_ACTIVATION[change]):
        user_files.load_plugin(mine(*change, content=LEAKY))


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_the_activations_of_this_package_pass_their_own_check(name):
    user_class_checks.check_plugin_activation(name)


@pytest.mark.parametrize("parent", ["erf", "relu"])
def test_an_activation_inherits_averages_and_kinks_with_g_only(parent):
    class Renamed(ACTIVATIONS[parent]):
        label = "the same g"

    class Another(Renamed):
        def both(self, x):
            return x**3, 3 * x**2

    class Stated(Another):
        has_closed_forms = True
        kinks = (1.0,)

    assert Renamed.has_closed_forms
    assert Renamed.I4 is ACTIVATIONS[parent].I4
    assert Renamed.kinks == ACTIVATIONS[parent].kinks
    assert (Another.has_closed_forms, Another.kinks, Another.equation) == (False, (), "")
    assert all(getattr(Another, name) is getattr(Activation, name) for name in GAUSSIAN_AVERAGE_METHODS)
    assert (Stated.has_closed_forms, Stated.kinks) == (True, (1.0,))
