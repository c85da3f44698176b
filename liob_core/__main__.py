"""`python -m liob_core`."""

from liob_core.cli.app import main

main()
