"""The plugins that an audit used: recorded in its run, and needed to read the run again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from equipoise.audits.config import AuditConfig, parse_config
from equipoise.core import Manifest
from equipoise.core.types import Facts, Json
from equipoise.data import FORMATS
from equipoise.discovery import KINDS, Place, Places, Registry, refused
from equipoise.metrics.spec import SPECS
from equipoise.models.registry import adapters

_REGISTRIES: tuple[Registry[Any], ...] = (SPECS, FORMATS, adapters(), adapters(makes_images=True))


def broken_metrics() -> Iterator[str]:
    """Yield a note on each metric that can't be imported."""
    yield from (f"Not measured: {error}" for error in SPECS.broken.values())


def plugin_versions(resolved: Facts, metrics: Iterable[str]) -> dict[str, str]:
    """Return the packages of the plugins that an audit used, with their versions.

    Parameters
    ----------
    resolved : mapping
        The configuration.
    metrics : iterable of str
        Names in the findings.

    Returns
    -------
    dict of str to str
        By what the package adds, such as "metric wrong_gap": "my-bias 1.0".
    """
    prefixes = [model.partition(":")[0] for model in _texts_at("model", resolved)]
    names = (metrics, _texts_at("format", resolved), prefixes, prefixes)
    places = [KINDS.get(kind) for kind in _texts_at("audit", resolved)]
    for registry, used in zip(_REGISTRIES, names, strict=True):
        places += [registry.places.get(name) for name in sorted({*used})]
    return {
        f"{place.noun} {place.name}": place.version
        for place in places
        if place is not None and not place.is_built_in
    }


def _texts_at(key: str, value: Json) -> Iterator[str]:
    """Yield the texts that a key has anywhere in a configuration."""
    if isinstance(value, Mapping):
        if isinstance(text := value.get(key), str):
            yield text
        value = [*value.values()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        for part in value:
            yield from _texts_at(key, part)


def config_of_run(manifest: Manifest, source: str) -> AuditConfig:
    """Return the configuration of a run.

    Parameters
    ----------
    manifest : Manifest
    source : str
        Its file, for errors.

    Raises
    ------
    PluginError
        When the run used a plugin which isn't installed.
    ConfigError
        When the configuration isn't valid.
    """
    check_plugins(manifest)
    return parse_config(manifest.resolved, source=source)


def check_plugins(manifest: Manifest, *, config: bool = True) -> None:
    """Refuse a run that used a plugin which isn't installed.

    Parameters
    ----------
    manifest : Manifest
    config : bool
        Whether the configuration is read again, which needs data formats and model adapters, too.

    Raises
    ------
    PluginError
        With the plugin and its package.
    """
    needed: tuple[Places | Registry[Any], ...] = (KINDS, SPECS)
    if config:
        needed = (KINDS, *_REGISTRIES)
    for used, origin in manifest.versions.items():
        for names in needed:
            name = used.removeprefix(f"{names.noun} ")
            if name != used and name not in names:
                package, _, version = origin.partition(" ")
                problem = f"the run used it from {origin}, which isn't installed"
                fix = f"install {origin}"
                if not version:
                    problem = f"the run used it from the module {origin}, which isn't imported"
                    fix = f"import {origin} and use Python, or put the module into a package"
                place = Place(names.noun, name, package, package if version else "")
                raise refused(problem, fix, place)
