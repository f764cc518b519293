from statmech.cli import main

main()
