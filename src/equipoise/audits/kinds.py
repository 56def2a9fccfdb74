"""Where kinds of audit are: folders with an `audit.py`, and packages of plugins."""

from pathlib import Path

from equipoise.discovery import Places

KINDS = Places(
    "kind of audit",
    "equipoise.kinds",
    Path(__file__).parent,
    "**/audit.py",
    "equipoise.audits.{folder}",
)
"""Package of each kind by name, with its `config`, `audit` and `page`, imported on first use."""
