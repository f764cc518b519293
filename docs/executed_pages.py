"""The cache of executed pages: a page runs again if its code, the package, a config or the data has changed."""

import hashlib
import os
import shutil
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.cache.main import JupyterCacheBase

from statmech.inputs.data_sets import DATA_FOLDER_ENV_VARIABLE

ROOT = Path(__file__).parent.parent
PACKAGES = ("statmech", "simulate", "theory", "figures", "configs")
FILES = ("pyproject.toml", "constraints.txt", "docs/conf.py")


def cache(root: Path = ROOT) -> str:
    """The folder of the pages that today's package has executed; those of others are removed."""
    folder = root / "docs/_build/executed" / _digest(root)
    for other in folder.parent.glob("*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    get_cache(str(folder)).db.dispose()  # made here, and not by two workers at once
    JupyterCacheBase.truncate_caches = _keep_all
    return str(folder)


def _keep_all(_: JupyterCacheBase) -> None:
    """Remove no page: a worker that keeps the newest asks twice what there is, and removes what was added between."""


def _digest(root: Path) -> str:
    """What every page depends on, whatever its own cells say."""
    found = hashlib.sha256()
    for file in [*_sources(root), *(root / name for name in FILES)]:
        found.update(f"{file.relative_to(root)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    for file in _data():
        found.update(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}\n".encode())
    return found.hexdigest()[:16]


def _sources(root: Path) -> list[Path]:
    files = (file for name in PACKAGES for file in (root / name).rglob("*"))
    return sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts)


def _data() -> list[Path]:
    """The files of real data, without which pages show other output."""
    folder = os.environ.get(DATA_FOLDER_ENV_VARIABLE)
    return sorted(file for file in Path(folder).rglob("*") if file.is_file()) if folder else []
