"""A rule in a file of the user is a rule like any other, and an invalid one is reported at once."""

from __future__ import annotations

import pytest
from test_statmech_cli import statmech

from statmech import RULES, ConfigError, plugins

MINE = """
from dataclasses import dataclass
from statmech.rules import RULES, Rule, parameter, step

@dataclass(frozen=True)
class Cautious(Rule):
    label = "cautious"
    depth: float = parameter(1.0, "stability below which an example is given up", above=0.0)
    kinks = property(lambda self: (-self.depth, 0.0))

    def g(self, kappa, length):
        return step(-kappa) * step(kappa + self.depth)

RULES["cautious"] = Cautious
"""
SMALL = ["rule=cautious", "depth=0.5,1", "K=3", "N=50", "t=1,2", "seeds=4"]


@pytest.fixture
def mine(tmp_path):
    """A function that writes the file with changes; the rules it adds are removed after the test."""
    before = dict(RULES)

    def written(old="", new=""):
        assert old in MINE
        file = tmp_path / "mine.py"
        file.write_text(MINE.replace(old, new, 1))
        return file

    yield written
    RULES.clear()
    RULES.update(before)
    plugins._loaded.clear()


@pytest.mark.slow
def test_the_command_simulates_solves_and_draws_a_rule_from_a_file(mine, in_scratch):
    done = statmech("--load", str(mine()), "run", "variety", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "depth" in done.stdout
    assert (in_scratch / "results" / "variety" / "overlay.png").exists()
    process = statmech("compare", "variety", *SMALL)
    assert process.returncode == 2
    assert '"cautious" is not a learning rule' in process.stderr


def test_child_processes_load_the_files_that_their_parent_has_run(mine):
    file = mine()
    plugins.load(file)
    plugins.load(file)  # once per process
    assert plugins.loaded() == [str(file)]
    assert plugins.for_children()[plugins.FILES] == str(file)


def test_the_environment_names_files_for_every_command(mine, monkeypatch):
    monkeypatch.setenv(plugins.FILES, str(mine()))
    plugins.load_named()
    assert "cautious" in RULES


WRONG = {
    ("@dataclass(frozen=True)", ""): "has parameters: it needs @dataclass",
    ('label = "cautious"', ""): "no attribute 'label'",
    ("(-self.depth, 0.0)", "(0.0,)"): "g jumps at stability -1, which is not among its kinks",
    ("return step(-kappa)", "return step(-kapa)"): "'kapa' is not defined",
    ("return step(-kappa)", "import numpy; return numpy.tanh(kappa)"): "namespace.kappa..tanh",
    ("return step(-kappa)", "return 1.0 if kappa < 0 else 0.0"): "write step.-kappa. for",
    ("class Cautious(Rule):", "class Cautious(Rule:"): r"mine.py:6: SyntaxError",
    ("step\n\n@", "stap\n\n@"): r"mine.py:3: ImportError",
}


@pytest.mark.parametrize("change", WRONG, ids=WRONG.values())
def test_an_error_in_a_rule_is_reported_before_anything_is_computed(mine, change):
    with pytest.raises(ConfigError, match=WRONG[change]):
        plugins.load(mine(*change))


def test_a_file_that_is_missing_or_not_python_is_reported(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        plugins.load(tmp_path / "nothing.py")
    (tmp_path / "rules.txt").write_text("")
    with pytest.raises(ConfigError, match="must end with"):
        plugins.load(tmp_path / "rules.txt")


@pytest.mark.parametrize("name", list(RULES))
def test_the_rules_of_this_package_pass_their_own_check(name):
    plugins.check(name)
