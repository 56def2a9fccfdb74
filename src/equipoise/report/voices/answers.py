"""How the report speaks of audits of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed
from equipoise.report.voices import Voice


def _question(result: AuditResult) -> str:
    return (
        f"{doing('Do', models_of(result))} answer as often, and with the same words, whatever the "
        f"{listed(groups_of(result))}?"
    )


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    labels: Any = result.manifest.counts.get("labels", {})
    models: Any = result.manifest.counts.get("models", {})
    rows = labels.get("rows", 0) if isinstance(labels, Mapping) else 0
    asked = [
        f"{name}: {count(one.get('states', {}).get('answered', 0))} answered"
        for name, one in (models.items() if isinstance(models, Mapping) else ())
    ]
    return (("Images", count(rows)), ("Answers", listed(asked, 12)))


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import answers

    return (answers.unanswered, answers.answers, answers.figures, answers.texts)


VOICE = Voice(
    question=_question,
    parts="answers",
    foremost=("answer_gap",),
    facts=_facts,
    sections=_sections,
)
