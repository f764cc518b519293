"""One import serves: `statmech.run`, `.compare`, `.draw`, `.load_results`; results show themselves in a notebook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import simulate
import statmech
import theory
from statmech import Results, Scenario, StoreError, load_results
from statmech.config.config_files import SHIPPED_CONFIG_FOLDER
from statmech.errors import ConfigError
from statmech.runtime.installed_packages import SHADOWABLE_PACKAGES
from statmech.stores import zarr_store

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[1]

SCENARIO = Scenario(rule="hebb", N=50, t=[1, 2], seeds=4, eta=[0.5, 1])


def output(code: str, **options) -> str:
    """What a fresh interpreter prints."""
    return subprocess.check_output([sys.executable, "-c", code], text=True, **options).strip()


@pytest.fixture(scope="module")
def results() -> Results:
    return statmech.run(SCENARIO)


def test_a_scenario_taken_for_its_results_is_answered_with_what_computes_them():
    for use in (statmech.draw, statmech.compare):
        with pytest.raises(TypeError, match=r"statmech\.run\(scenario\) returns them"):
            use(SCENARIO)
    with pytest.raises(AttributeError, match=r"statmech\.load_results\(folder\) reads it"):
        _ = SCENARIO.theory
    with pytest.raises(TypeError, match=r"requires a statmech\.Network, not 2"):
        statmech.theory.noise_floor(2, 1)


def test_one_call_simulates_and_solves(results):
    assert results.simulation.identical(simulate.run(SCENARIO))
    assert results.theory.identical(theory.solve(SCENARIO))
    assert results.scenario == SCENARIO


def test_a_config_is_run_by_name_with_other_values():
    results = statmech.run("ensemble", rule="hebb", K=[1, 2], N=50, t=[0, 1], seeds=2)
    assert dict(results.scenario.shape) == {"K": 2}
    assert (results.scenario.N, results.name) == (50, "ensemble")


@pytest.mark.slow
def test_a_scenario_without_theory_has_only_a_simulation(inputs_without_theory):
    results = statmech.run(Scenario(rule="hebb", N=20, t=[1], seeds=2, inputs=inputs_without_theory))
    assert results.scenario.unsolved
    assert results.theory is None
    assert results.scenario.unsolved in repr(statmech.compare(results))
    assert results.scenario.unsolved in results._repr_html_()


def test_the_comparison_is_that_of_the_two_datasets(results):
    [table] = statmech.compare(results)
    [same] = statmech.compare(results.simulation, results.theory)
    assert table == same
    assert table.title in repr(statmech.compare(results))


@pytest.mark.slow
def test_a_drawing_is_the_named_figure_or_the_one_that_fits(results):
    assert len(statmech.draw(results).axes) == len(results.draw("overlay").axes) > 0
    with pytest.raises(ConfigError, match="figure"):
        statmech.draw(results, figure="nonsense")


@pytest.mark.slow
def test_a_notebook_shows_the_table_and_the_figure(results):
    shown = results._repr_html_()
    assert "<table>" in shown
    assert "data:image/svg+xml;base64," in shown


def test_without_theory_a_notebook_shows_the_simulation(results):
    shown = Results(SCENARIO, results.simulation, name="<b>")._repr_html_()
    assert "simulation" in shown
    assert "<table>" not in shown
    assert "<b>:" not in shown


@pytest.mark.slow
def test_results_of_one_seed_are_shown_without_a_standard_error():
    shown = statmech.run(Scenario(rule="hebb", N=20, t=[1], seeds=1))._repr_html_()
    assert "a single seed has no standard error" in shown


def test_stored_results_are_loaded_with_their_scenario_and_figure(results, tmp_path):
    scenario = SCENARIO.model_copy(update={"figure": "overlay"})
    zarr_store.save(simulate.run(scenario), tmp_path / "mine" / "simulation.zarr")
    zarr_store.save(theory.solve(scenario), tmp_path / "mine" / "theory.zarr")
    loaded = load_results(tmp_path / "mine")
    assert (loaded.figure, loaded.name, loaded.folder) == ("overlay", "mine", tmp_path / "mine")
    assert loaded.simulation.equals(results.simulation)
    assert loaded.complete


def test_a_simulation_or_a_theory_alone_suffices(results, tmp_path):
    zarr_store.save(results.theory, tmp_path / "theory.zarr")
    loaded = load_results(tmp_path)
    assert loaded.simulation is None
    assert loaded.either is loaded.theory
    assert not loaded.complete


def test_results_that_are_missing_or_disagree_are_refused(results, tmp_path):
    with pytest.raises(StoreError, match="no results"):
        load_results(tmp_path)
    zarr_store.save(results.simulation, tmp_path / "simulation.zarr")
    zarr_store.save(theory.solve(Scenario(rule="hebb", t=[1])), tmp_path / "theory.zarr")
    with pytest.raises(StoreError, match="is not the theory of"):
        load_results(tmp_path)


def test_the_names_of_the_stub_are_listed_and_found():
    assert {"compare", "distances", "explore", "run", "simulate", "theory"} <= set(dir(statmech))
    assert all(getattr(statmech, name) is not None for name in dir(statmech))
    assert {name for name in dir(statmech) if name.startswith("_")} == {"__version__"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simulate", "theory", "figures"])
def test_packages_have_an_alias_that_is_the_package(name):
    code = f"import statmech; alias = statmech.{name}; import {name}; print(alias is {name})"
    assert output(code) == "True"
    code = f"from statmech import {name} as alias; import {name}; print(alias is {name})"
    assert output(code) == "True"


def test_theory_is_imported_equation_by_equation():
    """A run needs the equations of its own kind alone: SciPy's optimizers take longer to load than a small run."""
    code = "import sys, theory; print([name for name in ('jax', 'scipy', 'numpy') if name in sys.modules])"
    assert output(code) == "[]"
    assert "solve" in dir(theory)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "kind"), [("ensemble", "kinds.online_perceptron"), ("plateau", "kinds.network")])
def test_a_run_imports_only_its_own_kind_of_scenario(config, kind):
    """Those of other kinds took a twelfth of what a small run imports beside JAX, xarray, zarr and Matplotlib."""
    code = f"""
import statmech, sys
from simulate.execution.work_units import make_simulator
from statmech.keys.scenario import SCENARIOS, SCENARIOS_BY_KEY_PAIR
from theory.solutions import get_solver
modules = [name.partition(":")[0] for name in (*SCENARIOS.data.values(), *SCENARIOS_BY_KEY_PAIR.data.values())]
scenario = statmech.load({config!r})
make_simulator(scenario), get_solver(scenario)
print(*(name for name in modules if f"statmech.{{name}}" in sys.modules))
"""
    assert output(code) == kind


@pytest.mark.slow
def test_attentive_perceptrons_are_simulated_solved_and_drawn_without_jax():
    """Importing JAX for one line, that of the plain perceptron, took a tenth of a small run."""
    code = """
import statmech, sys
statmech.draw(statmech.run("attention", N=30, t=[0.2, 0.5], error_rate=[0.05, 0.3], seeds=2))
print("jax" in sys.modules)
"""
    assert output(code) == "False"


def test_importing_statmech_imports_nothing_heavy():
    heavy = ("numpy", "jax", "matplotlib", "xarray", "zarr", "pydantic", "simulate", "theory", "figures")
    assert output(f"import sys, statmech; print([name for name in {heavy} if name in sys.modules])") == "[]"


SHADOWING = {
    "alias": "import statmech; statmech.{name}",
    "run": "import statmech; statmech.run('ensemble', N=10, t=[1], seeds=1, rule='hebb', K=1)",
    "late": "import {name}; import statmech; statmech.{name}",
}


@pytest.mark.slow
@pytest.mark.parametrize("use", SHADOWING)
@pytest.mark.parametrize("name", ["simulate", "theory", "figures"])
@pytest.mark.parametrize("how", ["script", "command"])
def test_a_file_that_hides_a_package_is_named(use, name, how, tmp_path):
    (tmp_path / f"{name}.py").write_text("answer = 42\n")
    code = SHADOWING[use].format(name=name)
    (tmp_path / "script.py").write_text(code)
    command = [sys.executable, "script.py"] if how == "script" else [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    sentence = f"{tmp_path / name}.py hides the package `{name}` of statmech: rename {name}.py, and restart Python"
    assert done.returncode == 1
    assert f"UserWarning: {sentence}" in done.stderr
    assert done.stderr.strip().splitlines()[-1] == f"statmech.runtime.installed_packages.ShadowedError: {sentence}"


def test_a_package_that_was_installed_over_ours_is_named_before_anything_runs(tmp_path):
    for package in ("statmech", *SHADOWABLE_PACKAGES):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "simulate" / "__init__.py").write_text('"""Worlds of physics for agents."""\nimport dataclasses_json\n')
    command = [sys.executable, "-W", "ignore", "-m", "statmech", "run", "ensemble"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": ""}, capture_output=True, text=True)
    other = f"another package `simulate` was installed over the package of statmech, in {tmp_path / 'simulate'}"
    assert done.stderr == f"{other}: uninstall simulate and statmech, and install statmech again\n"
    assert done.returncode == 2
    assert not (tmp_path / "results").exists()


def test_a_script_with_the_name_of_a_package_is_warned_about(tmp_path):
    (tmp_path / "figures.py").write_text("import statmech\n")
    done = subprocess.run([sys.executable, "figures.py"], cwd=tmp_path, capture_output=True, text=True)
    assert "rename figures.py" in done.stderr


def test_a_folder_of_figures_hides_nothing(tmp_path):
    (tmp_path / "figures").mkdir()
    done = subprocess.run([sys.executable, "-c", "import statmech"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""


def test_a_theory_without_a_simulation_is_drawn_as_theory():
    scenario = statmech.Scenario(rule="hebb", N=50, t=[1, 2, 5], seeds=4)
    alone = statmech.Results(scenario, theory=theory.solve(scenario)).draw()
    assert all(line.get_marker() in ("None", "", None) for axes in alone.axes for line in axes.lines)
    assert any(line.get_xdata().size > 1 for axes in alone.axes for line in axes.lines)


@pytest.mark.slow
def test_one_run_of_the_command_reads_its_config_once(tmp_path, monkeypatch):
    from conftest import statmech as command

    from statmech.keys.scenario import AbstractScenario

    read, begin = [], AbstractScenario.__init__
    monkeypatch.setattr(AbstractScenario, "__init__", lambda self, **keys: read.append(keys) or begin(self, **keys))
    assert command("run", "ensemble", "rule=hebb", "K=1", "N=50", "t=1", "seeds=2", "--out", tmp_path) == 0
    assert len(read) == 1


def test_a_figure_is_that_of_a_shipped_config_or_the_one_asked_for_and_never_one_of_the_same_name(tmp_path):
    own = tmp_path / "variety.yaml"
    own.write_text("rule: hebb\nN: 20\nt: [1]\nseeds: 2\n")
    assert statmech.run(own).figure == "overlay"
    assert statmech.run(own, figure="ensemble").figure.name == "ensemble"
    assert statmech.run(SHIPPED_CONFIG_FOLDER / "variety.yaml", **SMALL_RUN).figure.name == "variety"
    assert statmech.run("variety", **SMALL_RUN).figure.name == "variety"


SMALL_RUN = {"rule": "hebb", "K": 1, "N": 20, "t": [1], "seeds": 2}


def test_a_run_reports_its_progress_where_it_is_asked_to_or_someone_can_see_it(capsys):
    statmech.run("ensemble", **SMALL_RUN)
    assert capsys.readouterr() == ("", "")
    statmech.run("ensemble", **SMALL_RUN, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "simulation" in err
    assert "theory" in err


def test_in_a_notebook_a_line_says_what_is_computed_and_goes_at_the_end(monkeypatch):
    from IPython import display

    lines = []

    class Handle:
        def update(self, line, raw):
            lines.append(line["text/html"])

    def show(line, raw, display_id):
        lines.append(line["text/html"])
        return Handle()

    monkeypatch.setattr(display, "display", show)
    monkeypatch.setattr("statmech.runtime.progress_bar.is_notebook", lambda: True)
    monkeypatch.setattr("statmech.runtime.progress_bar.NOTEBOOK_UPDATE_SECONDS", 0.0)
    statmech.run("ensemble", **SMALL_RUN)
    assert lines == [
        *("simulation", "simulation, compiling or loading programs", "simulation: 1 of 1", ""),
        *("theory", "theory, compiling or loading programs", "theory: 1 of 1", ""),
    ]
    lines.clear()
    statmech.run("ensemble", **SMALL_RUN, progress=False)
    assert lines == []
