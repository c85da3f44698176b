"""The command line: `python -m liob_core`, the same calls as the pages."""
