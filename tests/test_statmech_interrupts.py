"""An interrupt ends a command even where Python swallows exceptions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

SWALLOWED = """
import gc, os, signal, sys
from statmech.cli import commands as cli
signal.signal(signal.SIGINT, signal.default_int_handler)

class Collected:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        for _ in range(1000):  # here the signal becomes an exception, which Python prints and forgets
            pass

def begun(*_):
    Collected()
    print("went on", flush=True)

cli.app = begun
cli.main()
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_that_python_would_swallow_ends_the_command(sent, code):
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED, str(int(sent))],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "STATMECH_CACHE": "off"},
    )
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr == "Interrupted. Completed work is saved; rerun the command to resume.\n"
