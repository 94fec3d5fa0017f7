"""``python -m callsheet``: the command line."""

from callsheet.faces.cli import main

main()
