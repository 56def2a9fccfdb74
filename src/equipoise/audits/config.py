"""Read the configuration of an audit: one strict schema a kind, the same in YAML and Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from equipoise.audits.config_problems import explain, keys, nearest
from equipoise.audits.config_sections import AuditConfig
from equipoise.audits.config_yaml import line_of, parse_yaml
from equipoise.audits.kinds import names, schema
from equipoise.core.errors import ConfigError
from equipoise.core.files import IrregularFileError, read_regular


def parse_config(values: Any, *, source: str = "configuration") -> AuditConfig:
    """Check a configuration given as Python values.

    Parameters
    ----------
    values : mapping
        The keys of docs/config.md. A table may be a path or any data frame.
    source : str
        What to call it in errors.

    Raises
    ------
    ConfigError
        Naming each key that is wrong, what was given there and what is allowed.
    """
    return _validated(values, source, None)


def load_config(path: str | Path) -> AuditConfig:
    """Read and check a configuration file.

    Parameters
    ----------
    path : str or Path
        A YAML file. Relative paths in it are relative to its folder.

    Raises
    ------
    ConfigError
        When it cannot be read, is not YAML, or has a key or value that is not allowed.
    """
    return _validated(*read_values(path))


def read_values(path: str | Path, *, new: str = "equipoise new") -> tuple[Any, str, Any]:
    """Read a configuration file without checking its keys: values, source name, YAML node.

    Parameters
    ----------
    path : str or Path
    new : str
        The command that writes such a file.

    Raises
    ------
    ConfigError
        When it cannot be read or is not YAML. A pipe or a device is not waited for.
    """
    source = str(path)
    try:
        content = read_regular(path)
    except FileNotFoundError:
        raise ConfigError(
            f"{source}: no such file. To do: create one with '{new} {source}'"
        ) from None
    except IrregularFileError as error:
        raise ConfigError(
            f"{source}: {error.strerror}. To do: write what it gives to a file, and name that"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    values, node = parse_yaml(content, source)
    return values, source, node


def _validated(values: Any, source: str, node: Any) -> AuditConfig:
    if not isinstance(values, Mapping):
        raise ConfigError(
            f"{source}: {'empty' if values is None else 'not a mapping'}; expected the keys "
            f"{', '.join(keys(schema('predictions')))}. To do: start from 'equipoise new'"
        )
    audit = _audit(values, source, node)
    model = schema(audit)
    try:
        return model.model_validate(dict(values), context={"audit": audit})
    except ValidationError as error:
        raise ConfigError(explain(error, model, source, node)) from None
    except RecursionError:
        raise ConfigError(f"{source}: refers to itself; expected a plain tree of values") from None


def _audit(values: Mapping[Any, Any], source: str, node: Any) -> str:
    """Return the kind of audit; predictions where none is named, so that its schema says so."""
    audit = values.get("audit", "predictions")
    if audit in names():
        return str(audit)
    line = line_of(node, ["audit"])
    raise ConfigError(
        f"{source}{f', line {line}' if line else ''}: audit: given {audit!r}; expected one of "
        f"{', '.join(names())}{nearest(audit, names())}"
    )
