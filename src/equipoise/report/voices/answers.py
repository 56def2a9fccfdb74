"""How the report speaks of audits of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
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


_RATES = ("unanswered_rate", "unknown_rate", "refused_rate", "empty_rate")

VOICE = Voice(
    question=_question,
    parts="answers",
    foremost=("answer_gap",),
    titles=MappingProxyType(
        {
            "answer_gap": "Answer gap",
            "unknown_rate": "Share of “do not know”",
            "refused_rate": "Share refused",
            "empty_rate": "Share left empty",
            "label_concentration": "Label concentration",
            "label_skewness": "Skewness of the counts of answers",
            "correlation": "Correlation with figures from outside",
            "spearman": "Spearman's correlation with figures from outside",
        }
    ),
    frames=MappingProxyType(
        {
            ("answer_gap", False): (
                "How often {model} gives an answer differs by up to {points} between groups of "
                "{groups}."
            ),
            ("label_concentration", False): (
                "How far the answers of {model} pile up on a few differs by {points} between "
                "groups of {groups}."
            ),
            ("correlation", True): (
                "Over answers, the lean of {model} by {groups} has a correlation of {value} with "
                "{subject}."
            ),
            ("accuracy", False): "{model} gives the true answer on {share} of the images.",
            **{
                (rate, False): "{title}: a difference of {points} between groups of {groups}."
                for rate in _RATES
            },
        }
    ),
    groups_worse=MappingProxyType(dict.fromkeys((*_RATES, "answer_gap"), "higher")),
    facts=_facts,
    sections=_sections,
)
