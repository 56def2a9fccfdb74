"""Generate the list of metrics on docs/metrics.md from their records, when the site is built."""

import re
from itertools import groupby
from pathlib import Path

from equipoise.metrics import SPECS, MetricSpec
from equipoise.metrics.spec import aliases_of

DOCS = Path(__file__).resolve().parents[1] / "docs"
_FIELDS = {
    "direction": "Direction",
    "chance": "Chance level",
    "interval": "Interval",
    "null": "Null hypothesis",
    "reference": "Source",
    "errata": "Errors of the source",
}


def metric_list() -> str:
    """Return a section for each kind of audit, with the metrics that it reports first."""
    by_kind = groupby(
        sorted(SPECS.values(), key=lambda spec: (spec.kinds[0], spec.name)),
        key=lambda spec: spec.kinds[0],
    )
    sections = []
    for kind, specs in by_kind:
        heading = kind.replace("_", " ").capitalize()
        sections += [f"## {heading}", *map(metric_entry, specs)]
    return "\n\n".join(["", *sections, ""])


def metric_entry(spec: MetricSpec) -> str:
    """Return the entry of a metric: its definition, and a list of its properties."""
    threshold = "none, so no verdict until you set one"
    if spec.threshold is not None:
        threshold = f"{spec.threshold:g} ({spec.threshold_reason})"
    properties = {
        "Range": spec.range_text,
        "Shown as": spec.unit,
        **{title: getattr(spec, field) for field, title in _FIELDS.items()},
        "Practical threshold": threshold,
        "Aliases": ", ".join(f"`{alias}`" for alias in aliases_of(spec.name)),
        "Audits": ", ".join(map(_kind_link, spec.kinds)),
    }
    lines = [
        f"- **{title}:** {text if title in ('Aliases', 'Audits') else _escaped(text)}"
        for title, text in properties.items()
        if text and text != "none"
    ]
    definition = f"**{_escaped(spec.title)}.** {_escaped(spec.definition)}"
    return "\n".join([f"### `{spec.name}`", "", definition, "", *lines])


def _escaped(text: str) -> str:
    """Return text without Markdown in it."""
    return re.sub(r"([*$<\\])", r"\\\1", text)


def _kind_link(kind: str) -> str:
    pages = (f"audits/{kind}.md", f"{kind}.md")
    return next((f"[{kind}]({page})" for page in pages if (DOCS / page).exists()), kind)
