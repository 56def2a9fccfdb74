"""The config of an audit from arguments: sections of its kind by name, as a config has them."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, get_args

from pydantic import BaseModel

from equipoise.audits.config import AuditConfig, load_config, parse_config, schema
from equipoise.config.fields import called
from equipoise.core import InputError
from equipoise.data.problems import nearest
from equipoise.data.tables import TableSource
from equipoise.discovery import KINDS

Setting: TypeAlias = Any
"""What a key of a config takes: a text, a number, a list, a mapping, a table or a model."""
ConfigSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Setting]
"""A file with a config, or its keys."""
_ENDINGS = (".yaml", ".yml")


def is_config(data: TableSource | ConfigSource | None) -> TypeGuard[ConfigSource]:
    """Return whether this is a config: the path of a YAML file, or a mapping that says `audit`."""
    if isinstance(data, str | os.PathLike):
        return Path(data).suffix.lower() in _ENDINGS
    return isinstance(data, Mapping) and "audit" in data


def read_config(source: ConfigSource) -> tuple[AuditConfig, Path]:
    """Return a config, and the folder that its paths are relative to."""
    if isinstance(source, Mapping):
        return parse_config({**source}), Path()
    return load_config(Path(source)), Path(source).parent


def config_of(
    kind: str, data: TableSource | Mapping[str, Setting] | None, settings: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Return the config of a kind of audit.

    Parameters
    ----------
    kind : str
    data : path, data frame or mapping, optional
        A folder of images, a table, or the section `data`.
    settings : mapping
        Keys of the config, of its section `data`, or of `data.images`, each in its place.
        `model` is the only model.

    Raises
    ------
    InputError
        When there is no such kind.
    """
    if kind not in KINDS:
        near = nearest(kind, KINDS)
        hint = f"; did you mean {near!r}?" if near else ""
        raise InputError(f"kind: given {kind!r}. Allowed: {', '.join(KINDS)}{hint}")
    fields = schema(kind)
    in_data = _section(fields, "data")
    in_images = _section(in_data, "images")
    config: dict[str, Setting] = {"audit": kind}
    section: dict[str, Setting] = {**data} if isinstance(data, Mapping) else {}
    images: dict[str, Setting] = {}
    if data is not None and not isinstance(data, Mapping):
        is_folder = isinstance(data, str | os.PathLike) and Path(data).is_dir()
        plain = not is_folder and in_data is not None and "table" in in_data.model_fields
        source = os.fspath(data) if isinstance(data, os.PathLike) else data
        (section if plain else images)["folder" if is_folder else "table"] = source
    for key, value in settings.items():
        if key == "model":
            models = value if isinstance(value, Mapping) else {called(value): value}
            config["models"] = {name: {"model": model} for name, model in models.items()}
        elif key in fields.model_fields or in_data is None:
            config[key] = value
        elif in_images is None or key in in_data.model_fields or key not in in_images.model_fields:
            section[key] = value
        else:
            images[key] = value
    if images:
        section["images"] = {**images, **section.get("images", {})}
    return config | ({"data": section} if section else {})


def has_key(kind: str, key: str) -> bool:
    """Return whether a config of a kind has a key, in any section of its data or beside them."""
    if kind not in KINDS:
        return True
    fields = schema(kind)
    in_data = _section(fields, "data")
    sections = fields, in_data, _section(in_data, "images")
    return any(section is not None and key in section.model_fields for section in sections)


def _section(fields: type[BaseModel] | None, name: str) -> type[BaseModel] | None:
    """Return the schema of a section, or None."""
    if fields is None or name not in fields.model_fields:
        return None
    return next(_schemas(fields.model_fields[name].annotation), None)


def _schemas(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the schemas in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _schemas(argument)
