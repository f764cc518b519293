"""A stored number belongs to the code that made it: files of the user, and versions of statmech."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import types
import venv

import jax
import numpy as np
import pytest
from conftest import brief, quick_environment, statmech

import simulate
import theory
from simulate.execution import dask_cluster, store_simulation
from simulate.execution.store_simulation import run_into
from statmech import RULES, Scenario, StoreError, load_results
from statmech.classification.classifiers import CLASSIFIERS
from statmech.classification.stopping_boundaries import BOUNDARIES
from statmech.config import user_files
from statmech.keys.scenario import CLASS_REGISTRIES, SCENARIOS
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.runtime import operating_system, user_code_and_provenance
from statmech.runtime.user_code_and_provenance import REPOSITORY_FOLDER
from statmech.stores import checksums, store_creation, zarr_store
from statmech.stores.store_status import read_logged_runs
from statmech.stores.sweep_chunks import UNKNOWN_VERSION_INDEX, SweepStore
from statmech.students import rules

pytestmark = pytest.mark.quick

RULE = """
from dataclasses import dataclass
from statmech.students.rules import RULES, Rule, step

@dataclass(frozen=True)
class Mine(Rule):
    label, kinks = "mine", (0.0,)

    def g(self, kappa, length):
        return 1.0 * step(-kappa)

RULES["mine"] = Mine
"""
SWEEP = {"N": 20, "t": [1.0, 2.0], "seeds": 4}
ANOTHER = {"commit": "0123abc", "versions": {"statmech": "0.0.9", "jax": "0.1", "numpy": "2"}}


@pytest.fixture
def registered():
    """Registries as they were, after the test."""
    before = [(registry, dict(registry)) for registry in (*CLASS_REGISTRIES, BOUNDARIES, CLASSIFIERS, SCENARIOS)]
    loaded = dict(user_files._loaded_modules)
    yield
    for registry, known in before:
        registry.clear()
        registry.update(known)
    user_files._loaded_modules.clear()
    user_files._loaded_modules.update(loaded)


@pytest.fixture
def mine(tmp_path, registered):
    """A function that loads a file of the user, as a new process would."""

    def load(content=RULE, name="mine.py"):
        file = tmp_path / "files" / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(content)
        user_files.load_plugin(file)
        return file

    return load


def edited(content=RULE):
    return content.replace("1.0 * step", "3.0 * step")


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("rule: mine\nN: 20\nt: [1, 2]\nseeds: 4\n")
    return file


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.glob("*.zarr/**/*") if file.is_file()}


EACH = [["run"], ["run", "seeds=8"], ["simulate"], ["simulate", "seeds=8"]]


@pytest.mark.slow
@pytest.mark.parametrize("commands", [[["compare"]], EACH])
def test_results_of_an_edited_rule_are_refused_with_the_file_s_name(mine, config, tmp_path, capsys, commands):
    mine()
    for made in ("simulate", "theory"):
        assert statmech(made, config, "--out", tmp_path / "made") == 0
    before = contents(tmp_path / "made")
    mine(edited())
    capsys.readouterr()
    for command, *given in commands:
        folder = tmp_path / " ".join([command, *given])
        shutil.copytree(tmp_path / "made", folder)
        place = [folder] if command == "compare" else [config, *given, "--out", folder]
        assert statmech(command, *place) == 2
        message = capsys.readouterr().err.strip()
        remedy = "`statmech simulate" if command == "compare" else "Use --fresh to replace it, or --out DIR"
        assert f"was computed with other code than mine.py contains now. {remedy}" in message
        assert "\n" not in message
        assert contents(folder) == before
        if command != "compare":
            assert statmech(command, config, *given, "--out", folder / "other") == 0
            assert statmech(command, config, *given, "--fresh", "--out", folder) == 0
            capsys.readouterr()


@pytest.mark.slow
def test_without_the_digest_runs_of_both_rules_would_be_mixed(mine, path, monkeypatch):
    """The planted error of the test above."""
    monkeypatch.setattr("statmech.keys.scenario.find_used_classes", lambda scenario: set())
    mine()
    run_into(path, Scenario(rule="mine", **SWEEP))
    mine(edited())
    run_into(path, Scenario(rule="mine", **SWEEP | {"seeds": 8}))
    stored, new = zarr_store.load(path), simulate.run(Scenario(rule="mine", **SWEEP | {"seeds": 8}))
    assert not np.array_equal(stored.length[:4], new.length[:4])
    np.testing.assert_array_equal(stored.length[4:], new.length[4:])


@pytest.mark.slow
def test_simulation_and_theory_of_different_code_are_not_read_together(mine, path):
    mine()
    scenario = Scenario(rule="mine", **SWEEP)
    run_into(path, scenario)
    mine(edited())
    zarr_store.save(theory.solve(scenario), path.with_name("theory.zarr"))
    with pytest.raises(StoreError, match=r"mine\.py"):
        load_results(path.parent)
    mine()
    with pytest.raises(StoreError, match=r"mine\.py"):
        load_results(path.parent)


SUBCLASSES = {
    "statmech.students.rules:RULES": {"rule": "own", "t": 1},
    "statmech.inputs.input_distributions:INPUTS": {"rule": "hebb", "t": 1, "inputs": "own"},
    "statmech.students.activations:ACTIVATIONS": {"network": "own", "t": 1},
    "statmech.students.learners:LEARNERS": {"learner": "own", "alpha": 1},
    "statmech.convex.losses:LOSSES": {"loss": "own", "alpha": 1},
    "statmech.convex.teachers:TEACHERS": {"loss": "hinge", "alpha": 1, "teacher": "own"},
    "statmech.convex.weight_distributions:WEIGHT_DISTRIBUTIONS": {"loss": "hinge", "alpha": 1, "weights": "own"},
    "statmech.classification.stopping_boundaries:BOUNDARIES": {"attention": "own", "error_rate": 0.1, "t": 1},
    "statmech.classification.classifiers:CLASSIFIERS": {"classifier": "own", "data": "moons"},
}


@pytest.mark.parametrize("place", SUBCLASSES)
def test_the_file_of_any_class_that_a_scenario_uses_is_stated(mine, place, monkeypatch):
    module, registry = place.split(":")
    known = getattr(importlib.import_module(module), registry)
    monkeypatch.setattr(user_files, "REGISTRY_CHECKS", ())
    content = f"from {module} import {registry}\nclass Own({registry}['{next(iter(known))}']):\n    pass\n"
    given = SUBCLASSES[place]
    mine(f"{content}{registry}['own'] = Own\n")
    before = scenario_from(given).user_code_digests()
    assert set(before) == {"mine.py"}
    mine(f"{content}    further = 1\n{registry}['own'] = Own\n")
    assert scenario_from(given).user_code_digests() != before
    assert scenario_from({"rule": "hebb", "t": 1}).user_code_digests() == {}


def test_a_kind_of_scenario_of_one_s_own_states_its_file(mine):
    mine("from statmech.kinds.online_perceptron import Scenario\nfrom statmech.keys.scenario import SCENARIOS\n"
         "class Own(Scenario):\n    pass\nSCENARIOS['rule'] = Own\n")  # fmt: skip
    assert set(scenario_from({"rule": "hebb", "t": 1}).user_code_digests()) == {"mine.py"}


@pytest.fixture
def imported(tmp_path, monkeypatch, registered):
    """A function that imports a class, derived from a rule of ours, from a file at any place."""

    def load(place, content=RULE):
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.is_symlink():
            file.write_text(content)
        spec = importlib.util.spec_from_file_location("placed", file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "placed", module)
        spec.loader.exec_module(module)
        return module.Mine

    return load


def test_the_file_of_a_base_class_is_stated_and_that_of_another_import_is_not(mine, imported, monkeypatch):
    imported("bases.py", RULE.replace("Mine", "Base") + "FACTOR = 1.0\nMine = Base\n")
    mine("from placed import Base, FACTOR\nfrom statmech.students.rules import RULES\n"
         "class Mine(Base):\n    pass\nRULES['mine'] = Mine\n")  # fmt: skip
    assert set(Scenario(rule="mine", **SWEEP).user_code_digests()) == {"bases.py", "mine.py"}
    mine("from placed import FACTOR\n" + RULE.replace("1.0 *", "FACTOR *"))
    assert set(Scenario(rule="mine", **SWEEP).user_code_digests()) == {"mine.py"}


INSTALLED = "placed.py,sha256=0,9\nother.py,,\n"
PLACES = {  # file: whether it is a library's
    "user/lib/python3/site-packages/placed.py": True,
    "debian/dist-packages/inner/placed.py": True,
    "target/placed.py": True,  # pip install --target
    "project/placed.py": False,
    "project/.venv/src/placed.py": False,  # pip install -e git+...
    "developed/placed.py": False,  # the project of an editable installation
    "links/site-packages/placed.py": True,  # uv's link-mode symlink
    "links/elsewhere/site-packages/placed.py": False,  # a link to a project under development
}


@pytest.mark.parametrize("place", PLACES)
def test_files_of_installed_distributions_are_not_the_user_s_wherever_they_lie(imported, tmp_path, place):
    for file, content in {
        "target/placed-1.dist-info/RECORD": INSTALLED,
        "developed/placed.egg-info/SOURCES.txt": "placed.py\n",
        "developed/placed.egg-info/top_level.txt": "placed\n",
        "links/site-packages/placed-1.dist-info/RECORD": INSTALLED,
        "store/placed.py": RULE,
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    if place.startswith("links"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(tmp_path / "store" / "placed.py")
    assert (user_code_and_provenance.digest_user_code([imported(place)]) == {}) == PLACES[place]


@pytest.mark.slow
def test_libraries_on_pythonpath_are_no_code_of_the_user(tmp_path):
    """As with environment modules: an interpreter that has no library of its own."""
    venv.create(tmp_path / "bare", with_pip=False)
    places = f"{sysconfig.get_path('purelib')}{os.pathsep}{REPOSITORY_FOLDER}"
    environment = {**quick_environment(), "PYTHONPATH": places}
    command = [tmp_path / "bare/bin/python", "-m", "statmech", "run", "ensemble", "K=1", "N=20", "t=1", "seeds=2"]
    for _ in range(2):  # the result is read again
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    for name in ("simulation", "theory"):
        assert zarr_store.load(next(tmp_path.glob(f"results/*/{name}.zarr"))).attrs["code"] == "{}"


def test_an_edit_after_the_import_does_not_change_the_digest_of_the_code_in_memory(mine):
    file = mine()
    before = Scenario(rule="mine", **SWEEP).user_code_digests()
    file.write_text(edited())
    assert Scenario(rule="mine", **SWEEP).user_code_digests() == before
    user_files.load_plugin(file)
    assert Scenario(rule="mine", **SWEEP).user_code_digests() != before
    assert RULES["mine"]().g(-1.0, 1.0) == 3.0
    assert not (file.parent / "__pycache__").exists()  # Python would take its bytecode for the edited file


def test_two_files_of_one_name_are_distinguished(mine):
    mine(name="a/mine.py")
    mine(RULE.replace("Mine", "Other").replace('"mine"', '"other"'), name="b/mine.py")
    assert set(Scenario(rule=["mine", "other"], **SWEEP).user_code_digests()) == {"a/mine.py", "b/mine.py"}


CELL = """
def factor(kappa):
    return F * W[1] * np.sign(np.abs(kappa))
""" + RULE.replace("1.0 * step(", "factor(kappa) * step(").replace("    label", "    power = 1\n    label")
EDITS = {"F * W": "3 * W", "W[1]": "W[2]", "power = 1": "power = 2", "* step(-": "* step(1.0 -", "(0.0,)": "(1.0,)"}


def test_code_without_a_file_is_known_by_its_bytecode_and_all_that_it_uses(registered, monkeypatch):
    def defined(content=CELL, **names):
        notebook = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", notebook)
        vars(notebook).update({"F": 1.0, "W": np.arange(2000), "np": np, **names})
        exec(compile(content, "<cell>", "exec"), vars(notebook))
        return Scenario(rule="mine", **SWEEP).user_code_digests()

    known = defined()
    assert set(known) == {"Mine (no file)"}
    assert defined("# a comment\n" + CELL, unused=1) == known
    assert all(defined(CELL.replace(old, new, 1)) != known for old, new in EDITS.items())
    assert defined(F=2.0) != known
    assert defined(W=np.arange(2000) + (np.arange(2000) == 1000)) != known


@pytest.mark.slow
def test_code_without_a_file_has_one_digest_in_all_processes():
    content = CELL.replace("step(-", "step((self.label in {'a', 'mine', 'b'}) - ")  # a set, whose order varies
    code = f"import numpy as np\nF, W = 1.0, np.arange(3)\n{content}\n"
    code += "from statmech import Scenario\nprint(Scenario(rule='mine', t=1).user_code_digests())"
    processes = [
        subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, stdout=subprocess.PIPE)
        for seed in "12"
    ]
    assert b"Mine (no file)" in processes[0].stdout
    assert processes[0].stdout == processes[1].stdout


@pytest.mark.slow
def test_a_replaced_function_of_ours_is_seen_by_kept_programs_and_by_stores(path, monkeypatch):
    scenario = Scenario(rule="perceptron", **SWEEP)
    before = simulate.run(scenario)
    run_into(path, scenario)
    right = rules.Perceptron.g
    monkeypatch.setattr(rules.Perceptron, "g", lambda self, kappa, length: 3.0 * right(self, kappa, length))
    after = simulate.run(scenario)
    assert (after.length > 1.5 * before.length).sel(t=2.0).all()
    assert "test_statmech_own_code.py" in after.attrs["code"]
    with pytest.raises(StoreError, match=r"test_statmech_own_code\.py"):
        run_into(path, Scenario(rule="perceptron", **SWEEP | {"seeds": 8}))
    monkeypatch.undo()
    np.testing.assert_array_equal(simulate.run(scenario).length, before.length)
    monkeypatch.setattr(rules, "step", lambda x: 2.0 * (x > 0))
    assert not np.array_equal(simulate.run(scenario).length, before.length)


def test_a_function_that_computes_no_number_may_be_replaced(monkeypatch):
    monkeypatch.setattr("statmech.results.results.load_theory", lambda *given: None)
    assert user_code_and_provenance.find_replaced_functions() == ()
    monkeypatch.setattr("statmech.numerics.random_numbers.make_key_data", lambda number: number)
    assert [one.__name__ for one in user_code_and_provenance.find_replaced_functions()] == ["<lambda>"]


def test_every_function_without_a_file_counts_even_if_they_have_one_name(monkeypatch):
    def known(factors):
        for rule, factor in zip((rules.Perceptron, rules.Hebb), factors, strict=True):
            space = {"__name__": "__main__"}
            monkeypatch.setattr(rule, "g", eval(f"lambda self, kappa, length: {factor} * kappa", space))
        monkeypatch.setattr(
            user_code_and_provenance, "_replaced_functions", user_code_and_provenance.find_replaced_functions()
        )
        return user_code_and_provenance.digest_user_code([])

    assert set(known([1, 1])) == {"<lambda> (no file)"}
    assert len({str(known(factors)) for factors in ([1, 1], [1, 2], [3, 1])}) == 3


WRAPPERS = [lambda g: g, staticmethod, property, jax.jit, functools.partial, functools.partialmethod]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_replaced_method_is_seen_in_any_wrapper(wrapper, monkeypatch):
    monkeypatch.setattr(rules.Perceptron, "g", wrapper(lambda self, kappa, length: kappa))
    assert [one.__name__ for one in user_code_and_provenance.find_replaced_functions()] == ["<lambda>"]


@pytest.fixture
def another_version():
    """Functions that begin and end a time in which statmech is of another version."""
    patch, here = pytest.MonkeyPatch(), user_code_and_provenance.provenance()

    def begin():
        for module in (user_code_and_provenance, zarr_store, store_creation, store_simulation):
            patch.setattr(module, "provenance", lambda: {**here, **ANOTHER})

    yield begin, patch.undo
    patch.undo()


def altered(path, number):
    """A chunk's numbers changed by one part in 10^9 and stored with right checksums and fingerprints."""
    of = SweepStore(path)
    chunk = of.list_chunks()[number]
    values, versions = of.load_chunk_buffer(chunk, of.read_states(chunk)), of.read_versions(chunk)
    of.mark_missing(chunk)
    values["length"] *= 1 + 1e-9
    of.write_arrays(chunk, values, np.ones(chunk.shape, "int8"), versions)


@pytest.fixture
def made_by_another(path, another_version, tmp_path):
    """A config whose result in the folder another version has computed by a command."""
    begin, end = another_version

    def make(command):
        config = tmp_path / "c.yaml"
        config.write_text("rule: hebb\nN: 20\nt: [1, 2]\nseeds: 4\n")
        begin()
        assert statmech(command, config, "--out", path.parent) == 0
        end()
        return config

    return make


@pytest.mark.slow
def test_growth_by_another_version_keeps_both_and_says_so_once(path, made_by_another, capsys):
    config = made_by_another("simulate")
    assert statmech("simulate", config, "--out", path.parent) == 0  # nothing to add
    assert "are by" not in capsys.readouterr().err
    sentence = "the stored runs are by statmech 0.0.9 (0123abc), jax 0.1, numpy 2, new ones by statmech 0.1.0"
    assert statmech("simulate", config, "seeds=8", "--out", path.parent) == 0
    assert capsys.readouterr().err.count(sentence) == 1
    assert statmech("simulate", config, "seeds=12", "--out", path.parent) == 0
    assert "are by" not in capsys.readouterr().err
    of = SweepStore(path)
    assert [one["commit"] for one in of.provenances] == ["0123abc", user_code_and_provenance.provenance()["commit"]]
    assert np.concatenate([of.read_versions(chunk).ravel() for chunk in of.list_chunks()]).tolist() == [0] * 4 + [1] * 8
    np.testing.assert_array_equal(zarr_store.load(path).R, simulate.run(scenario_from(of.config)).R)


def test_a_theory_of_another_version_is_recomputed(path, made_by_another, capsys):
    config = made_by_another("theory")
    assert statmech("theory", config, "--out", path.parent) == 0
    sentence = "is by statmech 0.0.9 (0123abc), jax 0.1, numpy 2; it is recomputed"
    assert sentence in capsys.readouterr().err
    assert statmech("theory", config, "--out", path.parent) == 0
    assert "is up to date" in capsys.readouterr().err


@pytest.mark.slow
def test_a_resumed_sweep_records_which_version_finished_it(path, another_version, small_chunks):
    begin, end = another_version
    scenario = Scenario(rule=["hebb", "perceptron"], **SWEEP)
    begin()
    run_into(path, scenario)
    made = SweepStore(path)
    made.mark_missing(made.list_chunks()[1])
    end()
    run_into(path, scenario)
    of = SweepStore(path)
    assert [of.read_versions(chunk).ravel().tolist() for chunk in of.list_chunks()] == [[0] * 4, [1] * 4]


def test_a_damaged_chunk_that_another_version_recomputes_is_of_no_known_version(path, another_version):
    begin, end = another_version
    begin()
    run_into(path, Scenario(rule="hebb", **SWEEP))
    end()
    next(file for file in (path / "R" / "c").rglob("*") if file.is_file()).write_bytes(b"")
    run_into(path, Scenario(rule="hebb", **SWEEP))
    of = SweepStore(path)
    assert (of.read_versions(of.list_chunks()[0]) == UNKNOWN_VERSION_INDEX).all()
    assert store_simulation.recompute(path, 1).difference_descriptions == []


@pytest.mark.parametrize("number", brief([0, 1]))
def test_verify_recomputes_runs_of_every_version(path, another_version, small_chunks, capsys, number):
    begin, end = another_version
    scenario = Scenario(rule=["hebb", "perceptron"], **SWEEP)
    begin()
    run_into(path, scenario)
    made = SweepStore(path)
    made.mark_missing(made.list_chunks()[1])
    end()
    run_into(path, scenario)
    assert store_simulation.recompute(path, 1) == (8, [], "")
    assert statmech("verify", path.parent) == 0
    assert "8 runs read, 8 of them recomputed, all sound" in capsys.readouterr().out
    altered(path, number)
    assert statmech("verify", path.parent) == 1
    fault = capsys.readouterr().out.splitlines()[0]
    assert f"rule {scenario.rule[number]}, seed 0 to 3): length differ from the values of this version" in fault
    assert statmech("verify", path.parent, "--recompute", "0") == 0


@pytest.mark.slow
def test_a_rule_that_is_not_loaded_or_has_changed_is_not_recomputed(mine, path, capsys):
    mine()
    run_into(path, Scenario(rule="mine", **SWEEP))
    mine(edited())
    assert statmech("verify", path.parent) == 0
    assert "no run was recomputed" in capsys.readouterr().out
    del RULES["mine"]
    assert statmech("verify", path.parent) == 0
    assert '"mine" is not a learning rule' in capsys.readouterr().out


def git(*arguments, folder):
    identity = ["-c", "user.name=tests", "-c", "user.email=", "-c", "init.defaultBranch=main"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "check": True}
    return subprocess.run(["git", *identity, *arguments], **options).stdout.strip()


def repository(folder, ignored=""):
    """A git repository with all files of a folder in one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text(f"__pycache__\n{ignored}\n")
    git("init", folder=folder)
    git("add", "--all", folder=folder)
    git("commit", "--allow-empty", "--message", f"all of {folder}", folder=folder)
    return git("rev-parse", "HEAD", folder=folder)


def recorded_commit(root, cwd, **environment):
    """The commit that results state of the source in a folder."""
    code = "from statmech.runtime.user_code_and_provenance import provenance; print(provenance()['commit'])"
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_the_commit_is_that_of_our_own_checkout(tmp_path):
    checkout, project, installed = tmp_path / "ours", tmp_path / "project", "project/.venv/lib/site-packages"
    for place in ("ours", installed):
        for package in user_code_and_provenance.STATMECH_PACKAGES:
            shutil.copytree(
                REPOSITORY_FOLDER / package, tmp_path / place / package, ignore=shutil.ignore_patterns("__pycache__")
            )
    commit, other = repository(checkout), repository(project, ignored=".venv")
    (project / "git").write_text("#!/bin/sh\necho planted\n")
    (project / "git").chmod(0o755)
    git("worktree", "add", "--detach", tmp_path / "tree", folder=checkout)
    hook = {"GIT_DIR": str(project / ".git"), "PATH": f":{os.environ['PATH']}"}
    for root in (checkout, tmp_path / "tree"):
        found = recorded_commit(root, project, **hook)
        assert len(found) >= 7
        assert commit.startswith(found)
    source = recorded_commit(tmp_path / installed, project)
    assert not other.startswith(source)
    assert re.fullmatch(r"source-[0-9a-f]{8}", source)
    git("add", "--force", ".venv", folder=project)  # still not our repository
    git("commit", "--message", "vendored", folder=project)
    assert recorded_commit(tmp_path / installed, project) == source
    (tmp_path / installed / "theory/__init__.py").write_text("")
    assert recorded_commit(tmp_path / installed, project) != source


def test_results_record_the_processor_and_the_settings_that_change_last_digits(path, monkeypatch):
    for name in user_code_and_provenance.ROUNDING_ENV_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    user_code_and_provenance._describe_machine.cache_clear()
    plain = user_code_and_provenance.provenance()
    assert operating_system.get_processor_name() in plain["machine"]
    assert "XLA" not in plain["machine"]
    run_into(path, Scenario(rule="hebb", **SWEEP))
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    user_code_and_provenance._describe_machine.cache_clear()
    changed = user_code_and_provenance.provenance()
    run_into(path, Scenario(rule="hebb", **SWEEP | {"seeds": 8}))
    user_code_and_provenance._describe_machine.cache_clear()
    assert changed["machine"] == plain["machine"] + ", XLA_FLAGS=--xla_cpu_max_isa=AVX2, OPENBLAS_CORETYPE=Haswell"
    assert [provenance["machine"] for provenance in SweepStore(path).provenances] == [changed["machine"]]
    begun = [run[0]["machine"] for run in read_logged_runs(path.with_suffix(".log"))]
    assert begun == [plain["machine"], changed["machine"]]


def test_a_worker_of_another_version_is_refused():
    dask_cluster._check_worker_version(
        user_code_and_provenance.get_recorded_version(user_code_and_provenance.provenance())
    )
    with pytest.raises(StoreError, match=r"the worker on .* runs statmech .*, and this command statmech 0\.0\.9"):
        dask_cluster._check_worker_version(ANOTHER)


def made_before(path, scenario):
    """A store as versions created it that recorded neither code nor who computed a run."""
    plain = store_creation._create_empty

    def create(place, *given, **options):
        plain(place, *given, **options)
        shutil.rmtree(place / "made_by")
        group = json.loads((place / "zarr.json").read_text())
        for name in ("code", "earlier", "sealed"):
            group["attributes"].pop(name)
        del group["consolidated_metadata"]["metadata"]["made_by"]
        (place / "zarr.json").write_text(json.dumps(group))
        checksums.write_checksums(place)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_creation, "_create_empty", create)
        run_into(path, scenario)


@pytest.mark.slow
def test_a_store_without_these_records_is_read_grown_and_verified(path, another_version):
    begin, end = another_version
    begin()
    made_before(path, Scenario(rule="hebb", **SWEEP))
    end()
    of = SweepStore(path)
    assert of.code is None
    assert of.made_by is None
    assert store_simulation.recompute(path, 1) == (4, [], "")
    run_into(path, Scenario(rule="hebb", **SWEEP | {"seeds": 8}))
    of = SweepStore(path)
    assert np.concatenate([of.read_versions(chunk).ravel() for chunk in of.list_chunks()]).tolist() == [0] * 4 + [1] * 4
    np.testing.assert_array_equal(zarr_store.load(path).R, simulate.run(scenario_from(of.config)).R)


@pytest.mark.slow
def test_a_store_of_an_own_rule_without_its_digest_is_read_but_not_added_to(mine, path):
    mine()
    made_before(path, Scenario(rule="mine", **SWEEP))
    assert zarr_store.load_simulation(path, Scenario(rule="mine", **SWEEP)) is not None
    with pytest.raises(StoreError, match=r"mine\.py"):
        run_into(path, Scenario(rule="mine", **SWEEP | {"seeds": 8}))
