"""The tables beside the findings of an audit of generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.generation.gallery import gallery
from equipoise.audits.generation.measuring import MeasuredDesign
from equipoise.audits.group_sizes import sizes_of
from equipoise.core.groups import Groups
from equipoise.counterfactuals.filters.evidence import evidence
from equipoise.counterfactuals.filters.thresholds import of_combination

if TYPE_CHECKING:
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.loading import GenerationData

Row = dict[str, Any]

_REJECTIONS = pa.schema(
    [(name, pa.string()) for name in ("stage", "check", "attributes", "groups", "group")]
    + [("images", pa.int64())]
    + [(name, pa.float64()) for name in ("share", "low", "high", "chance_low", "chance_high")]
)
_SUBJECTS = pa.schema(
    [("subject", pa.string()), ("attributes", pa.string())]
    + [(name, pa.int64()) for name in ("sets", "kept")]
    + [("share", pa.float64())]
)
_THRESHOLDS = pa.schema(
    [("attributes", pa.string()), ("attribute", pa.string())]
    + [(name, pa.int64()) for name in ("threshold", "images")]
    + [("learned", pa.bool_())]
    + [(name, pa.int64()) for name in ("labels", "yes")]
    + [(n, pa.float64()) for n in ("agreement", "accuracy", "low", "high", "majority")]
    + [("curve", pa.list_(pa.float64()))]
)


def tables_of(
    config: Config, data: GenerationData, measured: Sequence[MeasuredDesign]
) -> Mapping[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/generation.md."""
    tables = {
        "stages": data.filtered.summary(),
        "group_sizes": group_sizes.table(_sizes(config, data)),
        "rejections": pa.Table.from_pylist([*_rejections(measured)], _REJECTIONS),
        **evidence(data.filtered),
    }
    subjects = [*_subjects(data)]
    if subjects:
        tables["subjects"] = pa.Table.from_pylist(subjects, _SUBJECTS)
    thresholds = [*_thresholds(config, data)]
    if thresholds:
        tables["thresholds"] = pa.Table.from_pylist(thresholds, _THRESHOLDS)
    shown = gallery(config, data)
    if shown.num_rows:
        tables["gallery"] = shown
    return tables


def _sizes(config: Config, data: GenerationData) -> Iterator[Row]:
    columns = data.filtered.candidates.columns
    for attributes in config.compared:
        rows = np.logical_and.reduce([columns[name].astype(bool) for name in attributes])
        found = {name: columns[name][rows] for name in attributes}
        yield from sizes_of(Groups.of(found, min_size=config.min_group_size))


def _rejections(measured: Sequence[MeasuredDesign]) -> Iterator[Row]:
    for one in measured:
        for part in one.estimate.parts:
            if part.metric != "rejected_share":
                continue
            group = part.by_group[0]
            yield {
                "stage": one.design.stage.name,
                "check": one.design.check.name,
                "attributes": part.subject,
                "groups": one.design.name,
                "group": group.group,
                "images": group.n,
                "share": part.value,
                "low": part.low,
                "high": part.high,
                "chance_low": part.chance_low,
                "chance_high": part.chance_high,
            }


def _subjects(data: GenerationData) -> Iterator[Row]:
    candidates = data.filtered.candidates
    if "subject" not in candidates.columns:
        return
    told = zip(
        candidates.of_candidates("subject").tolist(),
        candidates.of_candidates("attributes").tolist(),
        strict=True,
    )
    keys = [(str(subject or ""), kind) for subject, kind in told]
    for key in sorted({*keys}):
        rows = np.array([one == key for one in keys], dtype=bool)
        sets, kept = int(rows.sum()), int(data.filtered.kept[rows].sum())
        yield {
            "subject": key[0], "attributes": key[1], "sets": sets, "kept": kept,
            "share": kept / sets,
        }  # fmt: skip


def _thresholds(config: Config, data: GenerationData) -> Iterator[Row]:
    candidates = data.filtered.candidates
    of = candidates.of_candidates("attributes")
    shown = [one for one in data.filtered.filters if one.name == "attributes"]
    for check in (check for stage in shown for check in stage.checks):
        name = check.name.removesuffix(" shown")
        for kind in candidates.combinations:
            if name not in kind.split("-"):
                continue
            place = int(np.argmax(of == kind))
            one = data.learned.get((kind, name))
            yield {
                "attributes": kind,
                "attribute": name,
                "threshold": int(check.set_threshold[place]),
                "images": int(candidates.sizes[place]),
                "learned": one is not None and not _given(config, kind, name),
                **({} if one is None else _learned(one)),
            }


def _given(config: Config, kind: str, name: str) -> bool:
    about = config.filters.attributes
    return about is not None and name in of_combination(about.given, kind)


def _learned(one: Any) -> Row:
    names = ("labels", "yes", "agreement", "accuracy", "low", "high", "majority", "curve")
    return {name: getattr(one, name) for name in names}
