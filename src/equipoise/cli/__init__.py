"""The command line."""

from equipoise.cli.app import main

__all__ = ["main"]
