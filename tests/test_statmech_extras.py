"""Without optional libraries everything else works, and what needs them names the command that installs them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from conftest import quick_environment

from statmech.runtime import installed_packages

ROOT = Path(__file__).parents[1]
OPTIONAL = ("numba", "llvmlite", "sklearn", "joblib", "panel", "panel_material_ui", "bokeh", "jinja2", "distributed")
HIDDEN = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in which the optional libraries cannot be imported."""
    command, env = [sys.executable, "-c", HIDDEN + textwrap.dedent(code)], quick_environment()
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240)


JOBS = {
    "hebb_ensemble": ("N=100", "t=1", "K=1", "eta=1", "seeds=2"),
    "minover": ("N=20", "alpha=1", "epochs=2", "seeds=2"),
    "bayes_gap": ("N=40", "alpha=1,2", "seeds=2"),
    "boosting": ("P=50", "seeds=2"),
}
REFUSED = {  # what a command needs, and the extra that has it
    ("run", "attention", "N=100", "seeds=2"): ("an attentive perceptron needs numba", "estimators"),
    ("run", "stopping", "seeds=2"): ("a walk with early stopping needs numba", "estimators"),
    ("run", "digits", "seeds=1"): ("an estimator needs sklearn", "estimators"),
    ("run", "boosting", "k=3", "seeds=1"): ("boosting over conjunctions of three needs numba", "estimators"),
    ("explore", "ensemble"): ("explore needs panel", "explore"),
    ("simulate", "ensemble", "--dask", "local"): ("--dask needs distributed", "cluster"),
}


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """The exit code, the standard error and the folder of each command, all called by one process."""
    folder = tmp_path_factory.mktemp("answered")
    commands = [*(("run", name, *given, "--out", "here") for name, given in JOBS.items()), *REFUSED]
    code = f"""
    import contextlib, io, json, os
    from statmech.cli import main

    answers = []
    for number, words in enumerate({commands!r}):
        os.mkdir(f"../{{number}}")
        os.chdir(f"../{{number}}")
        sys.argv[1:] = words
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                main()
            except SystemExit as ended:
                answers.append((ended.code, errors.getvalue(), os.getcwd()))
    print(json.dumps(answers))
    """
    (folder / "begun").mkdir()
    done = run(code, folder / "begun")
    assert done.returncode == 0, done.stderr
    return dict(zip([*JOBS, *REFUSED], json.loads(done.stdout), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_the_main_jobs_run_and_draw_without_optional_libraries(name, answered):
    code, errors, folder = answered[name]
    assert not code, errors
    assert list(Path(folder, "here").glob("*.png"))


@pytest.mark.slow
@pytest.mark.parametrize("words", REFUSED, ids=lambda words: REFUSED[words][0])
def test_a_command_that_needs_an_extra_says_how_to_install_it_and_writes_nothing(words, answered):
    code, errors, folder = answered[words]
    what, extra = REFUSED[words]
    assert errors == f"{what}: pip install -e '.[{extra}]' in {ROOT}\n"
    assert code == 2
    assert not list(Path(folder).iterdir())


@pytest.mark.slow
def test_an_import_that_needs_an_extra_says_how_to_install_it(tmp_path):
    done = run("from simulate.learners import MinOver", tmp_path)
    assert (
        f"an estimator needs sklearn: {installed_packages.get_install_command('estimators')}"
        in done.stderr.splitlines()[-1]
    )


def test_outside_a_checkout_an_extra_is_installed_by_the_name_of_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(installed_packages, "CHECKOUT_FOLDER", tmp_path)
    assert installed_packages.get_install_command("explore") == "pip install 'statmech[explore]'"


@pytest.mark.slow
def test_every_extra_that_a_message_names_is_one_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    files = chain.from_iterable((ROOT / name).rglob("*.py") for name in ("statmech", "simulate", "theory", "figures"))
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    named = {node.args[1].value for node in nodes if getattr(node.func, "id", "") == "require_modules"}
    assert {"estimators", "explore", "cluster"} == named <= set(declared)


@pytest.mark.slow
def test_theory_that_compiles_nothing_is_solved_where_there_is_no_jax(tmp_path):
    """As in a browser: online learning by closed forms, replica theory, losses, descent, inference, boundaries."""
    code = """
    sys.modules.update(dict.fromkeys(("jax", "jaxlib", "typer")))
    import statmech

    for scenario in (
        statmech.Scenario(rule=["perceptron", "adatron"], K=3, t=[1, 10], flip=[0, 0.1]),
        statmech.Scenario(rule="hebb", t=1, inputs={"spectrum": [0.2, 1.8]}),
        statmech.OnlineClusters(clusters="gaussian", rule="adatron", t=[1, 5]),
        statmech.StoredExamples(learner="minover", alpha=2),
        statmech.Risk(loss="logistic", alpha=2, lam="best"),
        statmech.Descent(descent="gradient", loss="logistic", alpha=2, epochs=[1]),
        statmech.Clusters(clusters="gaussian", loss="hinge", alpha=2, lam=0.1),
        statmech.Inference(prior="binary", alpha=1),
        statmech.Stopping(boundary="constant", error_rate=0.1),
        statmech.Boosting(booster="adaboost", s=3, P=100),
    ):
        solved = statmech.solve(scenario)
        assert float(solved.to_array().notnull().mean()) > 0.5, scenario
    print(round(statmech.solve(statmech.StoredExamples(learner="minover", alpha=2)).kappa.item(), 6))
    """
    done = run(code, tmp_path)
    assert done.stdout == "0.454578\n", done.stderr
