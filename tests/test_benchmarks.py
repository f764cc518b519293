"""The benchmark scripts run at toy size, where their numbers are meaningless."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


SCRIPTS = (
    "attention.py",
    "calibration.py",
    "engines.py",
    "everyday.py commands demo equations programs vote fits trees live",  # `cores` is a table of engines.py
    "faults.py",
    "fits.py",
    "fluctuations.py",
    "learners.py",
    "networks.py",
    "networks_theory.py",
    "peers.py",
    "precision.py",
    "risk.py",
    "visitors.py",
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_runs_and_prints_its_tables(script):
    done = subprocess.run(
        [sys.executable, *script.split(), "--tiny"], capture_output=True, text=True, timeout=570, cwd=FOLDER
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert done.stdout.count("| --- |") >= 1


@pytest.mark.slow
def test_random_command_lines_and_configs_are_answered_or_refused():
    command = [sys.executable, FOLDER / "fuzz.py", "--tiny"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| command lines | 40 |" in done.stdout
