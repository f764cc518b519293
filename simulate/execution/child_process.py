"""A child process that simulates one chunk, or one parameter combination of a chunk (`simulate.execution.isolated`)."""

from __future__ import annotations

import sys
from pathlib import Path

from simulate.execution.chunks import simulate_stored_chunk
from statmech import plugins
from statmech.runtime.system import die_with_parent


def main() -> None:
    """Simulate the chunk that the arguments name: store, number, whether to retry failed runs, optional cell index."""
    plugins.load_plugins_from_environment()
    die_with_parent()
    path, number, again, *index = sys.argv[1:]
    simulate_stored_chunk(
        Path(path), int(number), again == "True", cell_index=tuple(map(int, index)) if index else None
    )
