"""Diversity of image sets: within each, and between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_diversity
from equipoise.report.blocks import Block, Chart, Fold, Grid, Section, Table, Words
from equipoise.report.charts_heat import tone
from equipoise.report.tables import panels, rows
from equipoise.report.text import count, interval, number, plural

Row = Mapping[str, Any]

MOST_CELLS = 30
# Characters of a label that an axis has room for; the number of images is in the tip as well.
_LONGEST = 22
_REFERENCE = " (reference)"


def diversity(result: AuditResult) -> Section | None:
    """How diverse each set is, and how far apart sets lie."""
    found = rows(result, "distances")
    if not found:
        return None
    blocks: list[Block] = [Words((_WITHIN,), "note")]
    for key, panel in panels(found, "model", "groups", "within").items():
        name = ", ".join(part for part in key if part)
        plots = [_intra(panel, name)]
        if len({row["set_a"] for row in panel}) <= MOST_CELLS:
            plots.append(_matrix(panel, name))
        blocks.append(Grid(tuple(plots)))
    blocks.append(_distances_table(found))
    blocks += _subsets(result)
    return Section("diversity", "How diverse the sets are, and how far apart", tuple(blocks))


_WITHIN = (
    "Two images of a set lie at a mean distance (1 − cosine of their embeddings) of ISS intra: the "
    "larger it is, the more diverse the set. In the map, the diagonal is this number, and a cell "
    "off it the mean distance between the images of two sets: darker than both their diagonals "
    "means that the sets lie apart. What distance is large depends on the embedding."
)


def _intra(panel: Sequence[Row], name: str) -> Chart:
    own = [row for row in panel if row["set_a"] == row["set_b"]]
    data = [
        {
            "set": _labelled(row["set_a"], row["n_a"]), "value": row["distance"],
            "low": row["low"], "high": row["high"],
            "role": "reference" if row["set_a"].endswith(_REFERENCE) else "set",
            "tip": f"{row['set_a']}: {number(row['distance'])} "
            f"{interval(row['low'], row['high'])}, n = {row['n_a']}",
        }
        for row in sorted(own, key=lambda row: row["distance"])
        if not math.isnan(row["distance"])
    ]  # fmt: skip
    spec = charts_diversity.diversities("rows", len(data))
    label = f"ISS intra by set: {name}. Point: value; line: interval; squares: reference data sets."
    return Chart(label, spec, {"rows": data}, None, f"Diversity within sets: {name}")


def _labelled(name: str, n: int) -> str:
    """Return a set's label with its images, but for a long name: its axis has no room for more."""
    label = f"{name} (n = {n})"
    return label if len(label) <= _LONGEST else name


def _matrix(panel: Sequence[Row], name: str) -> Chart:
    names = tuple(dict.fromkeys(row["set_a"] for row in panel))
    known = [row["distance"] for row in panel if not math.isnan(row["distance"])]
    low, high = (min(known), max(min(known) + 1e-9, *known)) if known else (0.0, 1.0)
    data = [
        {
            "set_a": row["set_a"], "set_b": row["set_b"], "distance": row["distance"],
            "shown": number(row["distance"], 2),
            "tone": "low" if math.isnan(row["distance"]) else tone(row["distance"], low, high),
            "tip": f"{row['set_a']} and {row['set_b']}: {number(row['distance'])} "
            f"{interval(row['low'], row['high'])}",
        }
        for row in panel
    ]  # fmt: skip
    spec = charts_diversity.distances("rows", names, low, high)
    return Chart(
        f"Mean distances of sets by sets: {name}; the diagonal is ISS intra.",
        spec, {"rows": data}, None, f"Distances between sets: {name}",
    )  # fmt: skip


def _distances_table(found: Sequence[Row]) -> Table:
    once = [row for row in found if row["set_a"] <= row["set_b"]]
    cells = [
        (
            row["set_a"], row["set_b"], number(row["distance"]), interval(row["low"], row["high"]),
            count(row["n_a"]), count(row["n_b"]), row["within"], row["groups"], row["model"],
        )
        for row in once
    ]  # fmt: skip
    columns = [
        "Set", "And", "#Mean distance", "#Interval", "#Images", "#Images of the other", "Within",
        "Sets by", "Model",
    ]  # fmt: skip
    return Table.of("Mean distances within and between sets", columns, cells, source="distances")


def _subsets(result: AuditResult) -> list[Block]:
    """List the images of every set that lie far apart, best first."""
    found = rows(result, "subsets")
    if not found:
        return []
    chosen = panels(found, "model", "groups", "within", "set")
    cells = [
        (name, ", ".join(str(row["image_id"]) for row in images), within, groups, model)
        for (model, groups, within, name), images in chosen.items()
    ]
    note = (
        "Chosen greedily for a large mean distance, first chosen first: a start for a diverse "
        "selection, which may leave out a whole cluster."
    )
    columns = ["Set", "~Images", "Within", "Sets by", "Model"]
    table = Table.of("Images that lie far apart", columns, cells, source="subsets")
    summary = f"Show a diverse subset of {plural(len(cells), 'set')}"
    return [Fold(summary, (Words((note,), "note"), table))]
