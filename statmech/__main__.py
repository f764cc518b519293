"""Entry point of `python -m statmech`, which is equivalent to the command `statmech`."""

from statmech.cli import command

if __name__ == "__main__":
    command()
