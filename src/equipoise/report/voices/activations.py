"""How the report speaks of audits of activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed, source
from equipoise.report.voices import Voice


def _question(result: AuditResult) -> str:
    regions = list(dict.fromkeys(finding.subject for finding in result.findings))
    return (
        f"{doing('Do', models_of(result))} look as much at the {listed(regions)} in images of "
        f"every group of {listed(groups_of(result))}?"
    )


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    data = result.manifest.resolved.get("data", {})
    data = data if isinstance(data, Mapping) else {}
    n = max((finding.n for finding in result.findings), default=0)
    unit = data.get("unit")
    return (
        ("Images with a region and a map", f"{count(n)}, from {source(data)}"),
        ("Maps", _maps(result)),
        ("Resampled together", f"images of one {unit}" if unit else ""),
        ("Chance", "shares: maps are exchanged between images; gaps: groups are"),
    )


def _maps(result: AuditResult) -> str:
    """Say how maps of each model were made, as far as it is known."""
    models = result.manifest.resolved.get("models", {})
    told = []
    for name, one in models.items() if isinstance(models, Mapping) else ():
        if isinstance(one, Mapping) and one.get("model"):
            asked = f", asked {one['question']!r}" if one.get("question") else ""
            told.append(
                f"{name}: {one.get('method')}, {one.get('layer') or 'default layer'}{asked}"
            )
        else:
            told.append(f"{name}: made elsewhere")
    return "; ".join(told)


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import activations

    return (activations.shares,)


VOICE = Voice(
    question=_question,
    parts="regions",
    facts=_facts,
    sections=_sections,
)
