"""The command line: one thin file per command. Only here is anything printed."""

from palate.cli.app import main

__all__ = ["main"]
