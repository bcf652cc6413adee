"""`python -m penstock.cli`: the same as `penstock`."""

from penstock.cli import main

main()
