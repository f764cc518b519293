"""Commands that describe the installation: configs, info, schema."""

from __future__ import annotations

import json

from statmech.cli.terminal import print


def configs() -> None:
    """List the shipped configs with a line of description each, grouped by question.

    Example: `statmech configs`.
    """
    from statmech import config
    from statmech.cli import output
    from statmech.questions import CONFIGS_BY_QUESTION

    output.print_grouped_names(
        {
            question: {name: config.read_config_description(name) for name in names}
            for question, names in CONFIGS_BY_QUESTION.items()
        }
    )


def info() -> None:
    """Show versions, devices, rules, learners and folders.

    Example: `statmech info`.
    """
    from statmech.cli import output

    output.print_described_names(_list_installation_facts())


def _list_installation_facts() -> list[tuple[str, str]]:
    from pathlib import Path

    import jax

    from statmech import config
    from statmech.learners import LEARNERS
    from statmech.results import store
    from statmech.rules import RULES

    provenance = store.provenance()
    return [
        *provenance["versions"].items(),
        ("python", provenance["python"]),
        ("machine", provenance["machine"]),
        ("devices", ", ".join(str(device) for device in jax.devices())),
        ("rules", ", ".join(RULES)),
        ("learners", ", ".join(LEARNERS)),
        ("configs", f"{config.SHIPPED_CONFIG_FOLDER}: {', '.join(config.list_shipped_configs())}"),
        ("results", str(Path("results").absolute())),
    ]


def schema() -> None:
    """Print the JSON Schema of config files, for editors.

    Example: `statmech schema > statmech.schema.json`.
    """
    from statmech.scenarios.registry import make_config_schema as config_schema

    print(json.dumps(config_schema(), indent=2))
