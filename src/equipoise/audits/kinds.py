"""Where kinds of audit are: folders of this package, and packages that registered others."""

from pathlib import Path

KINDS = tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/audit.py")))
"""Kinds of the package: folders with an `audit.py`, which is imported on first use."""

_HOMES = {kind: f"equipoise.audits.{kind}" for kind in KINDS}


def names() -> tuple[str, ...]:
    """Return the names of all kinds, registered kinds last."""
    return (*_HOMES,)


def home(kind: str) -> str:
    """Return the package of a kind of audit, with its `config`, `audit` and `page`."""
    return _HOMES[kind]


def add_home(kind: str, package: str) -> None:
    """Record the package of a kind of audit."""
    _HOMES[kind] = package


def remove_home(kind: str) -> None:
    """Forget the package of a kind of audit."""
    del _HOMES[kind]
