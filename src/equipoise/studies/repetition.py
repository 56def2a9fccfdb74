"""A run of a study, whose models and versions are recognised by their settings."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from equipoise.config.images import PicturesConfig
from equipoise.core import AuditResult, Finding
from equipoise.core.types import Facts, Json

Settings = Facts
"""Keys of a configuration with their values."""


@dataclass(frozen=True)
class Repetition:
    """A run of a study.

    Attributes
    ----------
    result : AuditResult
    configs : sequence of mapping
        The study's configurations. Its tables use their names of models and versions.
    """

    result: AuditResult
    configs: Sequence[Settings] = ()

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings of the run."""
        return self.result.findings

    @property
    def resolved(self) -> Facts:
        """The configuration of the run, with every default."""
        return self.result.manifest.resolved

    def of(self, model: str) -> "Repetition":
        """Return the run with the findings of one of its models."""
        findings = tuple(finding for finding in self.findings if finding.model == model)
        return replace(self, result=replace(self.result, findings=findings))

    def models(self, model: str | Settings) -> list[str]:
        """Return the models of the run with some settings, or with those of a name in the study.

        If no model or several have the settings of a name, the name is that of a model of the run.
        """
        models = _models(self.resolved)
        if not isinstance(model, str):
            return [name for name in models if contains(models[name], model)]
        alternatives = self._studied(model)
        matches = [
            name
            for name, settings in models.items()
            if any(contains(settings, alternative) for alternative in alternatives)
        ]
        return matches if len(matches) == 1 else [model]

    def versions(self, version: str | Settings) -> list[str]:
        """Return the versions of the run with some settings, or with those of a name in the study.

        Settings are the choices of a version. `rules` has by attribute the rule that makes the
        column of its groups.
        """
        if not isinstance(version, str):
            base = {**(self.resolved.get("choices") or {}), "rules": _rules(self.resolved, "")}
            names = dict.fromkeys(finding.version for finding in self.findings)
            settings = {name: base | self._changes.get(name, {}) for name in names}
            return [name for name in names if contains(settings[name], version)]
        alternatives = [_changes(config).get(version) for config in self.configs]
        matches = [
            name
            for name, changes in self._changes.items()
            if any(changes == alternative for alternative in alternatives)
        ]
        return matches if len(matches) == 1 else [version]

    def changed(self) -> list[str]:
        """Return the models and versions of the run to which the study gives other settings."""
        models = _models(self.resolved)
        names = [
            name
            for name in models
            if (alternatives := self._studied(name))
            and not any(contains(models[name], alternative) for alternative in alternatives)
        ]
        studied_changes = [_changes(config) for config in self.configs]
        for name, changes in self._changes.items():
            alternatives = [studied[name] for studied in studied_changes if name in studied]
            if alternatives and changes not in alternatives:
                names.append(name)
        return names

    def changed_settings(self) -> list[str]:
        """Return the keys that the run sets otherwise than the study, such as "data.outcome".

        The run is compared with the most similar of the study's configurations. Names and models
        are left out, see `changed`.
        """
        mine = _compared(self.result.manifest.config)
        studied = [_compared(config) for config in self.configs]
        kinds = [config for config in studied if config.get("audit") == mine.get("audit")]
        return min((differing(mine, config) for config in kinds), key=len, default=[])

    def _studied(self, model: str) -> list[Settings]:
        """Return the settings of a model in the study's configurations."""
        every_models = [_models(config) for config in self.configs]
        return [models[model] for models in every_models if model in models]

    @cached_property
    def _changes(self) -> Mapping[str, dict[str, Any]]:
        return _changes(self.resolved)


def contains(settings: Json, wanted: Json) -> bool:
    """Return whether settings have all wanted keys, at any depth, with the wanted values.

    A place that is still to be filled in, such as that of a folder, goes with any text.
    """
    if isinstance(wanted, str) and "${" in wanted:
        return isinstance(settings, str)
    if not isinstance(wanted, Mapping):
        return bool(settings == wanted)
    if not isinstance(settings, Mapping):
        return False
    # A key that isn't there is as null.
    return all(contains(settings.get(key), wanted[key]) for key in wanted)


_NOT_COMPARED = frozenset(
    ("study", "models", "generators", "versions", "report", "extraction", "gate", "compare")
)


def _compared(config: Settings) -> Settings:
    """Return the settings that decide the numbers."""
    return {key: value for key, value in config.items() if key not in _NOT_COMPARED}


def differing(settings: Json, wanted: Json, key: str = "") -> list[str]:
    """Return the keys, at any depth, that have other values in one of two settings.

    A place that is still to be filled in, such as that of words, goes with any value.
    """
    settings, wanted = _shortest(settings), _shortest(wanted)
    if isinstance(settings, Mapping) and isinstance(wanted, Mapping):
        names = dict.fromkeys((*wanted, *settings))
        places = ((settings.get(name), wanted.get(name), name) for name in names)
        return [
            place
            for mine, theirs, name in places
            for place in differing(mine, theirs, f"{key}.{name}".removeprefix("."))
        ]
    if isinstance(settings, list) and isinstance(wanted, list) and len(settings) == len(wanted):
        pairs = zip(settings, wanted, strict=True)
        return [key] if any(differing(mine, theirs, key) for mine, theirs in pairs) else []
    if isinstance(wanted, str) and "${" in wanted:
        return []
    return [] if settings == wanted else [key]


_ONLY_KEYS = (["values"], ["only"], ["1"], [""])
"""Keys that a configuration adds where a setting has a single value or list."""


def _shortest(value: Json) -> Json:
    """Return the shortest form of a setting, as configurations are written."""
    while True:
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, Mapping) and [*value] in _ONLY_KEYS:
            value = next(iter(value.values()))
        elif isinstance(value, Mapping) and all(value[name] in ([name], name) for name in value):
            return [*value]
        else:
            return value


def _models(config: Settings) -> Settings:
    """Return the models by name; generators, where findings are about these, among them."""
    return {**(config.get("models") or {}), **(config.get("generators") or {})}


def _changes(config: Settings) -> dict[str, dict[str, Any]]:
    """Return what each version changes; a column that a rule makes is that rule."""
    changes_by_version = dict[str, dict[str, Any]]()
    for version, changes in (config.get("versions") or {}).items():
        columns, rules = dict(changes.get("columns") or {}), dict[str, Settings]()
        for attribute, column in [*columns.items()]:
            start = f"{attribute} ("
            rule = _rules(config, column.removeprefix(start).removesuffix(")")).get(attribute)
            if rule is not None and column.startswith(start):
                rules[attribute] = rule
                del columns[attribute]
        choices = {key: value for key, value in changes.items() if key != "columns"}
        mappings = {"columns": columns, "rules": rules}
        changes_by_version[version] = choices | {k: v for k, v in mappings.items() if v}
    return changes_by_version


def _rules(config: Settings, version: str) -> dict[str, Settings]:
    """Return by attribute the rule of a version that makes the column of its groups."""
    data, rules = config.get("data") or {}, dict[str, Settings]()
    for attribute in _attributes(data.get("groups") or ()):
        for rule in _complete_rules(data.get("images") or {}):
            if (rule.get("version"), rule.get("attribute", attribute)) == (version, attribute):
                rules[attribute] = {key: rule[key] for key in rule if key != "version"}
    return rules


def _attributes(groups: Iterable[str | Sequence[str]]) -> Iterator[str]:
    for group in groups:
        yield from [group] if isinstance(group, str) else group


def _complete_rules(images: Settings) -> Sequence[Settings]:
    """Return the rules of images with every default."""
    if not images.get("rules"):
        return ()
    settings = {key: images[key] for key in images if key in PicturesConfig.model_fields}
    return _rules_of_text(json.dumps(settings))


@cache
def _rules_of_text(settings: str) -> Sequence[Settings]:
    """Return the rules of images as `_complete_rules`; each cell of a table asks for them."""
    images = PicturesConfig.model_validate(json.loads(settings)).model_dump(mode="json")
    rules: Sequence[Settings] = images["rules"]
    return rules
