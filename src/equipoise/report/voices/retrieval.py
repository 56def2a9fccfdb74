"""How the report speaks of audits of retrieval."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from equipoise.core import AuditResult
from equipoise.report.asking import doing, groups_of, models_of
from equipoise.report.blocks import Section
from equipoise.report.text import count, listed, source
from equipoise.report.voices import OWN_PREFERENCES, Voice


def _question(result: AuditResult) -> str:
    groups, asking = listed(groups_of(result)), doing("do", models_of(result))
    return f"Of images that differ in {groups}, whom {asking} show first?"


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    data = result.manifest.resolved.get("data", {})
    data = data if isinstance(data, dict) else {}
    n = max((finding.n for finding in result.findings), default=0)
    subject, sets = data.get("subject"), data.get("sets")
    ranked = f"the images of its own {subject}" if subject else "all images"
    chance = (
        f"the members of a {sets} exchange their groups" if sets else "a random order of the pool"
    )
    return (
        ("Images", f"{count(n)}, from {source(data)}"),
        ("Each query ranks", ranked),
        ("Chance", chance),
    )


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import retrieval

    return (retrieval.curves, retrieval.queries)


def _both(metric: str, text: str) -> dict[tuple[str, bool], str]:
    """Say the same over all queries and for one of them."""
    return {
        (metric, False): f"Over the queries of {{model}}, {text}",
        (metric, True): f"For “{{subject}}” in {{model}}, {text}",
    }


VOICE = Voice(
    question=_question,
    parts="queries",
    foremost=("max_skew", "ndkl", "retrieval_mad"),
    titles=MappingProxyType(
        {
            "max_skew": "MaxSkew@K",
            "min_skew": "MinSkew@K",
            "skew_at_k": "Skew@K",
            "ndkl": "NDKL",
            "bias_at_k": "Bias@K",
            "retrieval_mad": "MAD of shares",
            "normalized_similarity_mad": "MAD of similarities",
        }
    ),
    frames=MappingProxyType(
        {
            **_both(
                "max_skew",
                "the group of {groups} that is most over-represented among the first images is "
                "there {times} times as often as its share asks for (skew {value}).",
            ),
            **_both(
                "min_skew",
                "the group of {groups} that is most under-represented among the first images is "
                "there {times} times as often as its share asks for (skew {value}).",
            ),
            **_both(
                "ndkl",
                "the order of images departs from the desired shares of {groups} by an NDKL of "
                "{value}.",
            ),
            **_both(
                "retrieval_mad",
                "shares of {groups} among the first images deviate from each other by {value} in "
                "all.",
            ),
            **_both(
                "bias_at_k",
                "the difference in shares of two groups of {groups} among the first images is "
                "{value} (Bias@K).",
            ),
            **_both(
                "normalized_similarity_mad",
                "mean similarities of groups of {groups} to the query deviate from their mean by "
                "{value} standard deviations, summed over groups.",
            ),
            ("skew_at_k", True): (
                "Over the queries of {model}, {subject} is among the first images {times} times as "
                "often as its share asks for, on average (mean skew {value})."
            ),
        }
    ),
    harm=MappingProxyType({"min_skew": "lower", "bias_at_k": "either", "skew_at_k": "either"}),
    caveat=(
        f"{OWN_PREFERENCES}A ranking shows a preference whatever its size, so the number of "
        "disparities does not tell strong ones from weak ones. Read the excess over chance, and "
        "how far apart the similarities themselves are."
    ),
    facts=_facts,
    sections=_sections,
)
