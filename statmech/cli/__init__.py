"""The `statmech` command."""

from statmech.cli.commands import main as main
