"""The config of a run, which somebody else may have made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from equipoise.audits.config import AuditConfig, parse_config
from equipoise.core import ConfigError
from equipoise.data.addresses import shown
from equipoise.data.files import is_address

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.core import Facts
    from equipoise.core.types import Json

_TABLES = ("table", "file", "synonyms")


def config_of_run(resolved: Facts, run: Path) -> AuditConfig:
    """Return the resolved config of a run, which reads no address.

    Raises
    ------
    ConfigError
        When it names a table by an address: its author would choose the servers to contact.
    """
    source = str(run / "manifest.json")
    address = next(_addresses(resolved), None)
    if address is not None:
        raise ConfigError(
            f"{source}: a table of the run is at {shown(address)}, and no command contacts a "
            "server that a run names. To do: copy the table to this machine, and audit the copy"
        )
    return parse_config(resolved, source=source)


def _addresses(value: Json | Facts, key: str = "") -> Iterator[str]:
    """Yield the addresses of tables in a config."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _addresses(part, name)
    elif isinstance(value, str):
        if key in _TABLES and is_address(value):
            yield value
    elif isinstance(value, Sequence):
        for part in value:
            yield from _addresses(part, key)
