"""Prompt ensembling: a neutral prompt stands for its counterfactual captions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from equipoise.core.errors import InputError
from equipoise.mitigate.recipe import Progress, WrappedRecipe
from equipoise.mitigate.sets import SubjectTexts, Training
from equipoise.models.wrapped import PLACE, Ensemble, Rule, Wrapping

if TYPE_CHECKING:
    from equipoise.models import DualEncoder


class PromptEnsemble(WrappedRecipe):
    """Neutral prompts whose vector is the mean of the unit vectors of their captions.

    The texts of the training subjects give the templates: a prompt and a caption with the subject
    taken out, which hold for any other subject.

    Attributes
    ----------
    name : str
    """

    recipe: Literal["prompt_ensemble"] = "prompt_ensemble"
    name: str = "prompt_ensemble"

    def _wrapping(
        self,
        base: DualEncoder,  # noqa: ARG002 - texts alone decide
        training: Training,
        record: Mapping[str, Any],
        progress: Progress | None,  # noqa: ARG002 - done at once
    ) -> Wrapping:
        return Wrapping(ensemble_of(training.texts), record=record)


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
    for own in texts:
        for text in (own.subject, *own.neutral, *own.attributed):
            if PLACE in text:
                raise InputError(
                    f"{text!r}, of {own.subject!r}, holds {PLACE}, which stands for the subject in "
                    "templates; expected texts and values without it"
                )
        captions = [_template(text, own.subject) for text in own.attributed]
        for prompt in own.neutral:
            neutral = _template(prompt, own.subject)
            if neutral.count(PLACE) == 1:
                matches = [text for text in captions if PLACE in text]
            else:
                neutral, matches = prompt, [*own.attributed]
            if matches:
                rules.setdefault(neutral, {}).update(dict.fromkeys(matches))
    values = values_named(texts)
    if not rules or not values:
        raise InputError(
            "no caption says a neutral prompt with attributes: expected captions that name the "
            "subject as it is called, and the values of their attributes"
        )
    return Ensemble(tuple(Rule(key, tuple(said)) for key, said in sorted(rules.items())), values)


def values_named(texts: Sequence[SubjectTexts]) -> tuple[str, ...]:
    """Return the values of attributes that captions name, sorted."""
    return tuple(
        sorted({value for own in texts for row in own.values for value in row.values() if value})
    )


def _template(text: str, subject: str) -> str:
    """Return a text with places for the subject; the text itself where it has none."""
    return re.sub(rf"(?<!\w){re.escape(subject)}(?=s?(?!\w))", lambda _: PLACE, text)
