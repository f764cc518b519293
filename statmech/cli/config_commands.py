"""Commands about configs and the installation: `configs`, `info` and `schema`."""

from __future__ import annotations

import json
from pathlib import Path

from statmech.cli.terminal_output import print


def configs() -> None:
    """List the shipped configs with a line of description each, grouped by question.

    Example: `statmech configs`.
    """
    from statmech.cli import terminal_output
    from statmech.config.shipped_configs import group_configs_by_question, read_shipped_configs

    shipped = read_shipped_configs()
    terminal_output.print_grouped_names(
        {
            question: {name: shipped[name].figure.title for name in names}
            for question, names in group_configs_by_question().items()
        }
    )


def info() -> None:
    """Show versions, devices, rules, learners and folders.

    Example: `statmech info`.
    """
    from statmech.cli import terminal_output

    terminal_output.print_described_names(_list_installation_facts())


def _list_installation_facts() -> list[tuple[str, str]]:
    import jax

    from statmech.config import config_files
    from statmech.runtime.user_code_and_provenance import provenance
    from statmech.students.learners import LEARNERS
    from statmech.students.rules import RULES

    origin = provenance()
    return [
        *origin["versions"].items(),
        ("python", origin["python"]),
        ("machine", origin["machine"]),
        ("devices", ", ".join(str(device) for device in jax.devices())),
        ("rules", ", ".join(RULES)),
        ("learners", ", ".join(LEARNERS)),
        ("configs", f"{config_files.SHIPPED_CONFIG_FOLDER} (`statmech configs` lists them)"),
        ("results", str(Path("results").absolute())),
    ]


def schema() -> None:
    """Print the JSON Schema of config files, for editors.

    Example: `statmech schema > statmech.schema.json`.
    """
    from statmech.kinds.selection_and_vocabulary import make_config_schema

    print(json.dumps(make_config_schema(), indent=2))
