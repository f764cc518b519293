"""User files that register additional rules, activations or losses: `statmech --load my_rules.py run ...`.

A file is run before a config is read. Its additions to `statmech.RULES`, `statmech.ACTIVATIONS`, `statmech.LOSSES` and
to the descents, teachers and weights of `statmech.convex` can then be used in the config. The workers of a command run
the same files. STATMECH_LOAD lists files that every command loads.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from statmech.config.user_class_checks import REGISTRY_CHECKS
from statmech.errors import ConfigError
from statmech.runtime import files, user_code_and_provenance

MAX_PLUGIN_BYTES = 10_000_000
PLUGIN_FILES_ENV_VARIABLE = "STATMECH_LOAD"  # list of files, separated as in PATH
SAFE_PATH_ENV_VARIABLE = "PYTHONSAFEPATH"  # keeps `python -c` and `python -m` from importing from the current folder
_loaded_modules: dict[str, ModuleType] = {}  # keys: absolute paths


def load_plugin(file: str | Path) -> None:
    """Run a plugin file unless its current version has already run, or raise `ConfigError` with the failing line.

    The file can import modules from its own folder, unless a library has the same name.
    """
    path = Path(os.path.realpath(file))  # does not raise an error for circular links
    if not path.is_file():
        raise ConfigError(f"{file}: no such Python file")
    before = _loaded_modules.get(str(path))
    if before is not None and user_code_and_provenance.is_module_current(before):
        return
    name = f"own_{path.stem}" if before is None else before.__name__
    if before is None and name in sys.modules:  # another module has this name
        name += f"_{len(_loaded_modules)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{file}: is not a Python file: its name must end in .py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    registered = [dict(registry) for registry, _ in REGISTRY_CHECKS]
    try:
        # loader.exec_module would run stale bytecode after an edit within a second that keeps the file's size
        exec(compile(files.read_bounded_file(path, MAX_PLUGIN_BYTES), str(path), "exec"), vars(module))
    except Exception as failure:
        raise ConfigError(f"{file}{_format_failure_line(path, failure)}: {type(failure).__name__}: {failure}") from None
    for (registry, check_class), previous in zip(REGISTRY_CHECKS, registered, strict=True):
        for name in registry:
            if registry[name] is not previous.get(name):
                check_class(name)
    _loaded_modules[str(path)] = module
    # store the digest now: the file may be edited while this process runs
    user_code_and_provenance.is_module_current(module)


def load_plugins_from_environment() -> None:
    """Run the files listed in the environment variable STATMECH_LOAD."""
    for file in filter(None, os.environ.get(PLUGIN_FILES_ENV_VARIABLE, "").split(os.pathsep)):
        if not Path(file).is_absolute():
            raise ConfigError(
                f"{PLUGIN_FILES_ENV_VARIABLE}={file}: is relative to the current folder: write the absolute path"
            )
        load_plugin(file)


def list_loaded_plugin_files() -> list[str]:
    """Return the plugin files run in this process, for workers to run as well."""
    return list(_loaded_modules)


def make_child_environment() -> dict[str, str]:
    """Return the environment for a child process that loads the same plugin files.

    The child does not import from the current folder: it may hold results from an unknown source, with modules that
    have the names of libraries.
    """
    return os.environ | {PLUGIN_FILES_ENV_VARIABLE: os.pathsep.join(_loaded_modules), SAFE_PATH_ENV_VARIABLE: "1"}


def _format_failure_line(path: Path, failure: Exception) -> str:
    """Return the line of a failure in a plugin file as ":line", or an empty string if unknown."""
    if isinstance(failure, SyntaxError):
        return f":{failure.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(failure.__traceback__) if frame.filename == str(path)]
    return f":{lines[-1]}" if lines else ""
