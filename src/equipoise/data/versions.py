"""States of answers, and the versions that mappings and normalisation make of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError
from equipoise.data.coded import Coded
from equipoise.data.outputs import Outputs
from equipoise.data.problems import listed, looks_missing, nearest, show
from equipoise.data.sources import Normalization, Reading

STATES = ("answered", "missing", "unknown", "refused", "unmatched")
ANSWERED, MISSING, UNKNOWN, REFUSED, UNMATCHED = range(len(STATES))
MAX_OUTSIDE = 5
MAX_PAIRS = 5


@dataclass(frozen=True)
class Recipe:
    """How raw texts become labels in one version.

    Attributes
    ----------
    name : str
    mapping : mapping of str to str
    normalize : Normalization or None
    classes : tuple of str
        Of the target: a normalised text that equals a normalised class becomes that class.
    """

    name: str
    mapping: Mapping[str, str]
    normalize: Normalization | None
    classes: tuple[str, ...] = field(repr=False)

    def __call__(self, text: str) -> str:
        """Return the label of a text."""
        if self.normalize is None:
            return self.mapping.get(text, text)
        label = self.normalize(text)
        label = self._forms.get(self.normalize.form(label), label) if self.mapping else label
        return self._class_forms.get(self.normalize.form(label), label)

    @cached_property
    def _forms(self) -> dict[str, str]:
        normalize = self.normalize or Normalization()
        return {normalize.form(text): label for text, label in self.mapping.items()}

    @cached_property
    def _class_forms(self) -> dict[str, str]:
        normalize = self.normalize or Normalization()
        return {normalize.form(name): name for name in self.classes}

    @property
    def scale(self) -> str:
        """What this version does, in words."""
        steps = [self.normalize.describe()] if self.normalize else []
        if self.mapping:
            content = json.dumps(dict(self.mapping), sort_keys=True).encode()
            pairs = [f"{text} → {label}" for text, label in sorted(self.mapping.items())]
            version = hashlib.sha256(content).hexdigest()[:8]
            steps.append(f"mapping {self.name} ({version}): {listed(pairs, MAX_PAIRS)}")
        return "; then ".join(steps) or "labels as given"


def recipes(reading: Reading, classes: tuple[str, ...], file: str) -> list[Recipe]:
    """Return the versions that a reading makes; see `Reading`.

    Raises
    ------
    DataError
        When normalisation makes two classes of the target one.
    """
    maps = dict(reading.maps) or {"default": {}}
    if reading.normalize is None:
        return [Recipe(name, mapping, None, classes) for name, mapping in maps.items()]
    seen: dict[str, str] = {}
    for name in classes:
        other = seen.setdefault(reading.normalize.form(name), name)
        if other != name:
            raise DataError(
                f"normalisation makes the classes {show(other)} and {show(name)} one",
                file=reading.key("normalize") if reading.place else file,
                expected="classes that stay different",
                fix="map them to one class in `data: map:`, or turn a step of "
                f"`{reading.key('normalize')}:` off",
            )
    return [
        Recipe(f"{name}, {kind}" if len(maps) > 1 else kind, mapping, normalize, classes)
        for name, mapping in maps.items()
        for kind, normalize in (("raw", None), ("normalised", reading.normalize))
    ]


def text_states(
    reading: Reading, vocabulary: Sequence[str], classes: tuple[str, ...], file: str
) -> npt.NDArray[np.int8]:
    """Return the state of each text of a vocabulary.

    Raises
    ------
    DataError
        When a class of the target is listed as missing, unknown or refused.
    """
    form = reading.normalize.form if reading.normalize else str
    states = {
        form(text): state
        for state, name in ((REFUSED, "refused"), (UNKNOWN, "unknown"), (MISSING, "missing"))
        for text in getattr(reading, name)
    } | {"": MISSING}
    for name in classes:
        if form(name) in states:
            state = STATES[states[form(name)]]
            key = reading.key(state)
            raise DataError(
                f"{show(name)} is a class of the target and is listed under `{state}:`",
                file=key if reading.place else file,
                fix=f"take it out of `{key}:`, or map the class to another name",
            )
    return np.array([states.get(form(text), ANSWERED) for text in vocabulary], dtype=np.int8)


def outside_classes(
    outside: Sequence[str],
    classes: Sequence[str],
    outputs: Outputs,
    row: int | None,
    of: str,
    reading: Reading,
) -> DataError:
    """Return the error of labels that are no classes, which a model predicts or is bound to.

    Parameters
    ----------
    outside, classes : sequence of str
    outputs : Outputs
    row : int or None
        Where the first of them is.
    of : str
        Whose classes they are: "the target 'job'".
    reading : Reading
    """
    near = {label: nearest(label, classes, least=MISSPELT) for label in outside}
    meant = [f"{show(label)} may be {show(to)}" for label, to in near.items() if to]
    missing = [label for label in outside if looks_missing(label)]
    fixes = [
        *meant,
        f"map them to a class under `{reading.key('map')}:`, or set "
        f"`{reading.key('open_vocabulary')}: true`",
        f"list texts of missing predictions as `{reading.key('missing')}: "
        f"{json.dumps(['', *missing])}`",
        "write 1, not 1.0",
    ]
    if outputs.choices is not None and not outputs.choices.listed:
        fixes[-1] = f"keep fewer ranks with `{reading.key('k')}:`"
    return DataError(
        f"{len(outside)} labels are no classes of {of}: {listed(outside, MAX_OUTSIDE)}",
        file=outputs.source,
        column=outputs.column,
        row=row,
        expected=f"one of {listed(classes)}",
        fix="; or ".join(fixes),
    )


def choices_outside(
    labels: Sequence[str],
    reading: Reading,
    recipe: Recipe,
    classes: Sequence[str],
    target: tuple[str, ...],
) -> list[str]:
    """Return the labels that a model may predict and that are no class, sorted.

    Parameters
    ----------
    labels : sequence of str
        That the model may predict.
    reading : Reading
    recipe : Recipe
    classes : sequence of str
        Labels that are allowed.
    target : tuple of str
        Classes of the target.
    """
    states = text_states(reading, labels, target, "").tolist()
    pairs = zip(labels, states, strict=True)
    return sorted(
        label for label, state in pairs if state == ANSWERED and recipe(label) not in classes
    )


MISSPELT = 0.85
"""How alike two words are of which one is taken for the other, misspelt."""


def unused_entries(mapping: Mapping[str, str], labels: Iterable[str]) -> dict[str, Any]:
    """Return the entries of a mapping that no row has, and what they may be a misspelling of.

    Parameters
    ----------
    mapping : mapping of str to str
    labels : iterable of str
        That rows have.

    Returns
    -------
    dict
        `map_unused`; and where there are any, `map_nearest`: entry to a similar label that the
        mapping does not name.
    """
    every = {*labels}
    unused, left = sorted({*mapping} - every), sorted(every - {*mapping})
    found = {entry: nearest(entry, left, least=MISSPELT) for entry in unused}
    near = {entry: label for entry, label in found.items() if label is not None}
    return {"map_unused": unused} | ({"map_nearest": near} if near else {})


def count_version(raw: Coded, made: Coded, recipe: Recipe, allowed: int) -> dict[str, Any]:
    """Return what a recipe changed, counted over first ranks of answered rows."""
    before, after = raw.codes[:, 0], made.codes[:, 0]
    used, first = np.unique(before, return_index=True)
    used, first = used[used >= 0], first[used >= 0]
    pairs = zip(used.tolist(), after[first].tolist(), strict=True)
    different = [old for old, new in pairs if raw.vocabulary[old] != made.vocabulary[new]]
    return {
        "labels_before": len(used),
        "labels_after": len(np.unique(after[after >= 0])),
        "rows_changed": int(np.isin(before, different).sum()),
        "rows_outside_classes": int((after >= allowed).sum()),
        **unused_entries(recipe.mapping if recipe.normalize is None else {}, raw.vocabulary),
    }
