"""Read the images, the concepts, what each model says of both, and what was expected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from equipoise.audits.retrieval import loading as retrieval
from equipoise.audits.retrieval.loading import RetrievalData
from equipoise.core.errors import DataError
from equipoise.data import Items, load_items

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import RankingAudit
    from equipoise.audits.similarity.config import Config, HypothesisConfig


@dataclass(frozen=True)
class Expected:
    """What was declared of each concept.

    Attributes
    ----------
    name : str
        Of the column that says it.
    favours : mapping of str to str
        Concept to the group that is expected to be favoured; of those that have one.
    values : mapping of str to float
        Concept to a number; of those that have one.
    """

    name: str
    favours: Mapping[str, str]
    values: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class SimilarityData(RetrievalData):
    """What an audit of similarity measures.

    Attributes
    ----------
    images, models, inputs, counts
        See `RetrievalData`.
    expected : tuple of Expected
        In the order of the configuration's hypotheses.
    """

    expected: tuple[Expected, ...] = ()


def load(config: Config, *, base: Path) -> SimilarityData:
    """Read everything that a configuration names.

    Raises
    ------
    DataError
        See `equipoise.audits.retrieval.loading.load`; or when a set has images of several units,
        or a hypothesis has a value that is no number or names none of the concepts.
    """
    # The sections that say what to read are those of an audit of retrieval.
    found = retrieval.load(cast("RankingAudit", config), base=base)
    _check_nested(config, found.images)
    asked = {query for model in found.models.values() for query in model.queries}
    inputs, counts, expected = dict(found.inputs), dict(found.counts), []
    for index, one in enumerate(config.hypotheses):
        items = load_items(one.source(base), what=f"hypotheses[{index}]")
        inputs |= items.inputs
        counts[f"hypotheses[{index}]"] = items.counts
        expected.append(_expected(one, items, asked))
    return SimilarityData(found.images, found.models, inputs, counts, tuple(expected))


def _check_nested(config: Config, images: Items) -> None:
    """Refuse sets that are split over units: sets are resampled whole."""
    sets, unit = config.data.sets, config.data.unit
    if sets is None or unit is None:
        return
    seen: dict[str, Any] = {}
    pairs = zip(images.columns[sets].tolist(), images.columns[unit].tolist(), strict=True)
    for row, (name, owner) in enumerate(pairs, start=1):
        if name is not None and seen.setdefault(name, owner) != owner:
            raise DataError(
                f"{sets} {name!r} has images of several units: {seen[name]!r} and {owner!r}",
                file=images.name,
                column=unit,
                row=row,
                expected=f"one {unit} in each {sets}",
                fix="name the unit that holds whole sets, or leave data.unit out",
            )


def _expected(about: HypothesisConfig, items: Items, asked: set[str]) -> Expected:
    ids = [str(one) for one in items.ids.tolist()]
    if not asked & {*ids}:
        raise DataError(
            f"none of the {len(ids)} concepts is compared, such as {ids[0]!r}",
            file=items.name,
            column=about.concept,
            expected=f"names such as {min(asked)!r}",
            fix="name concepts as the queries' subject, or the queries, are named",
        )
    favours, values = {}, {}
    if about.favours is not None:
        column = items.columns[about.favours].tolist()
        favours = {name: str(one) for name, one in zip(ids, column, strict=True) if one is not None}
    if about.value is not None:
        column = items.columns[about.value].tolist()
        values = {
            name: _number(one, row, items.name, about.value)
            for row, (name, one) in enumerate(zip(ids, column, strict=True), start=1)
            if one is not None
        }
    return Expected(about.value or about.favours or "", favours, values)


def _number(text: Any, row: int, file: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return value
    raise DataError(
        f"{text!r} is no finite number",
        file=file,
        column=column,
        row=row,
        expected="a number, or an empty cell",
        fix="write decimals with a point, or name the text under `missing`",
    )
