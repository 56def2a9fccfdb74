"""The command line: parse, call, print, exit code."""

from equipoise.cli.app import main

__all__ = ["main"]
