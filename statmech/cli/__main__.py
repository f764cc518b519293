"""`python -m statmech.cli`: the same as the command `statmech`."""

from statmech.cli import command

if __name__ == "__main__":
    command()
