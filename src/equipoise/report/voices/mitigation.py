"""How the report speaks of recipes that lower a disparity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from equipoise.core import AuditResult
from equipoise.report.asking import doing, models_of
from equipoise.report.blocks import Section
from equipoise.report.voices import Voice

_NAMES = {
    "ndkl": "NDKL",
    "logit_gap": "Similarity gap in logits",
    "accuracy": "Zero-shot accuracy",
    **{f"image_recall_at_{k}": f"Image retrieval R@{k}" for k in (1, 5, 10)},
    **{f"text_recall_at_{k}": f"Text retrieval R@{k}" for k in (1, 5, 10)},
}


def name_of_measure(measure: str) -> str:
    """Return the name of a measure for display."""
    return _NAMES.get(measure, measure.replace("_", " "))


def _within(name: str) -> str:
    """Return a name as it reads within a sentence; abbreviations keep their capitals."""
    return name if name[:2].isupper() else name[0].lower() + name[1:]


def _question(result: AuditResult) -> str:
    return (
        f"{doing('Do', models_of(result))} lower the disparities of subjects not learned from, and "
        "at what price?"
    )


_LEADS = {
    "cannot be told": "Whether {recipe} transfers cannot be told",
    "price not measured": "What {recipe} costs was not measured",
}


_CONCLUSIONS = (
    "transfers",
    "price not measured",
    "transfers in part",
    "cannot be told",
    "costs too much",
    "does not transfer",
)
_PLACE = {conclusion: place for place, conclusion in enumerate(_CONCLUSIONS)}


def told_first(recipes: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return rows of `mitigation_recipes`, those that transfer first; alike ones as they stood."""
    return sorted(recipes, key=lambda one: _PLACE.get(one["conclusion"], len(_PLACE)))


def said_of(one: Mapping[str, str]) -> str:
    """Return what is said of a recipe, a row of `mitigation_recipes`, in whole sentences."""
    lead = _LEADS.get(one["conclusion"], "{recipe} " + one["conclusion"])
    return f"{lead.replace('{recipe}', one['recipe'])}: {one['sentence']}."


def _in_short(result: AuditResult) -> tuple[str, ...]:
    table = result.tables.get("mitigation_recipes")
    return tuple(map(said_of, told_first([] if table is None else table.to_pylist())))


def _sections() -> tuple[Callable[[AuditResult], Section | None], ...]:
    from equipoise.report.sections import mitigation

    return (mitigation.price, mitigation.subjects)


VOICE = Voice(
    question=_question,
    parts="recipes",
    titles=MappingProxyType(
        {f"{name}_change": f"Change of {shown}" for name, shown in _NAMES.items()}
    ),
    frames=MappingProxyType(
        {
            (f"{name}_change", False): (
                f"With {{model}}, {shown} of withheld subjects by {{groups}} changed by {{value}}."
                if name in ("ndkl", "logit_gap")
                else f"With {{model}}, {shown} on {{groups}} changed by {{value}}."
            )
            for name, shown in zip(_NAMES, map(_within, _NAMES.values()), strict=True)
        }
    ),
    in_short=_in_short,
    sections=_sections,
)
