"""Prompt ensembling: a neutral prompt stands for its counterfactual captions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.core.errors import InputError
from equipoise.mitigate.fitting import wrapped
from equipoise.mitigate.record import digest_of_texts, record_of
from equipoise.mitigate.sets import SubjectTexts
from equipoise.models.wrapped import PLACE, Ensemble, Rule, Wrapping

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress, Training
    from equipoise.models import DualEncoder


@dataclass(frozen=True)
class PromptEnsemble:
    """Neutral prompts whose vector is the mean of the unit vectors of their captions.

    How a neutral prompt is said with attributes is read off the training subjects: a prompt and a
    caption with the subject taken out are templates, which hold for any other subject.

    Attributes
    ----------
    name : str
    """

    name: str = "prompt_ensemble"

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its settings."""
        return {"recipe": "prompt_ensemble", **asdict(self)}

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,  # noqa: ARG002 - every recipe is told
    ) -> DualEncoder:
        """Read the templates off the texts of the training subjects."""
        record = record_of(self.facts, base, seed, _inputs(training))
        return wrapped(
            out, base, record, lambda: Wrapping(ensemble_of(training.texts), record=record)
        )


def _inputs(training: Training) -> dict[str, Any]:
    return {"texts": digest_of_texts(training.texts), "subjects": sorted(training.subjects)}


def ensemble_of(texts: Sequence[SubjectTexts]) -> Ensemble:
    """Return the templates that the texts of subjects have in common.

    A subject is found as a whole word, or with an s for many: "man" not in "woman". A caption may
    hold it several times. A prompt that does not hold it once is kept whole, and holds for itself
    alone.

    Raises
    ------
    InputError
        When no caption names a value of an attribute, or a text holds ``{}``.
    """
    rules: dict[str, dict[str, None]] = {}
    for one in texts:
        _refuse_places(one)
        said = [_template(text, one.subject) for text in one.attributed]
        for prompt in one.neutral:
            neutral = _template(prompt, one.subject)
            if neutral.count(PLACE) != 1:
                neutral = prompt
            fits = said if PLACE in neutral else one.attributed
            fits = [text for text in fits if (PLACE in text) == (PLACE in neutral)]
            if fits:
                rules.setdefault(neutral, {}).update(dict.fromkeys(fits))
    values = sorted({v for one in texts for named in one.values for v in named.values() if v})
    if not rules or not values:
        raise InputError(
            "no caption says a neutral prompt with attributes: expected captions that name the "
            "subject as it is called, and the values of their attributes"
        )
    made = tuple(Rule(neutral, tuple(said)) for neutral, said in sorted(rules.items()))
    return Ensemble(made, tuple(values))


def _refuse_places(one: SubjectTexts) -> None:
    for text in (one.subject, *one.neutral, *one.attributed):
        if PLACE in text:
            raise InputError(
                f"{text!r}, of {one.subject!r}, holds {PLACE}, which stands for the subject in "
                "templates; expected texts and values without it"
            )


def _template(text: str, subject: str) -> str:
    """Return a text with places for the subject; the text itself where it has none."""
    return re.sub(rf"(?<!\w){re.escape(subject)}(?=s?(?!\w))", lambda _: PLACE, text)
