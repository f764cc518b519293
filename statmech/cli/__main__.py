"""`python -m statmech.cli`: the same as the command `statmech`."""

from statmech.cli import main

if __name__ == "__main__":
    main()
