"""The tables beside the findings of an audit of answers, see docs/audits/answers.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits.answers.designs import RAW, AnswersDesign, frequent_answers

if TYPE_CHECKING:
    from equipoise.audits.answers.config import AnswersOptions
    from equipoise.audits.answers.loading import AnswersData
    from equipoise.audits.answers.outside import Related

Row = dict[str, Any]

# Raw texts that are listed for each answer.
_TEXTS = 5


def of_design(
    design: AnswersDesign, related: Sequence[Related], options: AnswersOptions
) -> dict[str, pa.Table]:
    """Return the tables of one design by name."""
    rows = {
        "answers": [*_answers(design, options)] if design.leads and not design.silent else [],
        "answer_states": [*_states(design)] if design.leads else [],
        "figures": [row for each in related for row in _points(each)],
    }
    return _tables(rows)


def texts_of(data: AnswersData, options: AnswersOptions) -> dict[str, pa.Table]:
    """Return the raw texts behind each answer, as the table `texts`."""
    return _tables(
        {"texts": [row for each in data.asked for row in _texts(data, each.key, options)]}
    )


def _tables(rows: Mapping[str, list[Row]]) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(some, _SCHEMAS[name]) for name, some in rows.items() if some}


def _place(one: AnswersDesign) -> Row:
    return {"model": one.model, "groups": one.groups.name, "version": one.shown}


def _answers(one: AnswersDesign, options: AnswersOptions) -> Iterator[Row]:
    counts = one.pooled(options)
    table = counts.by_prediction(counts.observed)[0]
    totals = table.sum(axis=0)
    hits = _hits(one)
    for place in np.argsort(-table.sum(axis=1), kind="stable").tolist():
        answer = counts.classes[place]
        for group, name in enumerate(counts.groups.names):
            n, total = round(table[place, group]), round(totals[group])
            share = n / total if total else None
            right = hits.get((answer, name), 0) if hits is not None else None
            said = {"answer": answer, "group": name, "count": n, "n": total}
            yield _place(one) | said | {"share": share, "right": right}


def _hits(one: AnswersDesign) -> dict[tuple[str, str], int] | None:
    """Count the right answers by answer and group; None where no true answer is known."""
    if not one.data.classes:
        return None
    counts = one.counts
    right = counts.hits(counts.observed)[0]
    places, groups = np.nonzero(right)
    return {
        (counts.classes[place], counts.groups.names[group]): round(right[place, group])
        for place, group in zip(places.tolist(), groups.tolist(), strict=True)
    }


def _texts(data: AnswersData, key: str, options: AnswersOptions) -> Iterator[Row]:
    """List the raw texts behind each answer, the most frequent first."""
    asked = next(one for one in data.asked if one.key == key)
    versions = data.rows.models[key].versions
    if RAW not in versions:
        return
    raw, made = versions[RAW].coded, [*versions.values()][-1].coded
    given = raw.codes >= 0
    pairs = np.stack([made.codes[given], raw.codes[given]], axis=1)
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    for answer in frequent_answers(made, options):
        place = made.vocabulary.index(answer)
        own = np.flatnonzero(distinct[:, 0] == place)
        ranked = own[np.argsort(-counts[own], kind="stable")]
        for rank, index in enumerate(ranked[:_TEXTS].tolist()):
            yield {
                "model": asked.model, "question": asked.question, "answer": answer,
                "text": raw.vocabulary[distinct[index, 1]], "rank": rank + 1,
                "count": int(counts[index]), "texts": len(own),
            }  # fmt: skip


def _states(one: AnswersDesign) -> Iterator[Row]:
    """Count what became of the rows of each group, whichever states occur."""
    states = one.state
    present = [state for state in _STATES if (states == state).any()]
    for group, name in enumerate(one.groups.names):
        mine = states[one.groups.codes == group]
        for state in present:
            n = int((mine == state).sum())
            share = n / len(mine) if len(mine) else None
            yield {
                "model": one.model, "groups": one.groups.name, "question": one.question,
                "group": name, "state": state, "count": n, "n": len(mine), "share": share,
            }  # fmt: skip


_STATES = ("answered", "unknown", "refused", "missing")


def _points(one: Related) -> Iterator[Row]:
    at = {"model": one.place.model, "groups": one.place.groups, "version": one.place.version}
    for point in one.points:
        yield at | {
            "figure": one.figure, "first": one.first, "answer": point.answer,
            "outside": point.figure, "lean": point.lean, "n": point.n,
        }  # fmt: skip


def _schema(texts: str, whole: str, numbers: str = "") -> pa.Schema:
    kinds = ((texts, pa.string()), (whole, pa.int64()), (numbers, pa.float64()))
    return pa.schema([(name, kind) for names, kind in kinds for name in names.split()])


_SCHEMAS = {
    "answers": _schema("model groups version answer group", "count n right", "share"),
    "texts": _schema("model question answer text", "rank count texts"),
    "answer_states": _schema("model groups question group state", "count n", "share"),
    "figures": _schema("model groups version figure first answer", "n", "outside lean"),
}
