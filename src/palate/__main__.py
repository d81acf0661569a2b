"""`python -m palate`."""

from palate.cli import main

main()
