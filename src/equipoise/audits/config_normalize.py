"""The section that brings free text to labels; predictions and answers have it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from equipoise.audits.config_fields import Label, Labels, Section
from equipoise.data import Normalization

_STEPS = Normalization()


class NormalizeConfig(Section):
    """How free-text predictions become classes; the raw result is kept beside it.

    Attributes
    ----------
    case_fold, whitespace : bool
        Compare without case; take any run of white space as one space.
    punctuation : str
        Characters taken off both ends.
    articles, leading_phrases : list of str
        Words and phrases taken off the start.
    synonyms : mapping
        Normalised text to class, applied last.
    """

    case_fold: bool = _STEPS.case_fold
    whitespace: bool = _STEPS.whitespace
    punctuation: str = _STEPS.punctuation
    articles: Labels = _STEPS.articles
    leading_phrases: Labels = _STEPS.leading_phrases
    synonyms: Mapping[Label, Label] = Field(default_factory=dict)

    @property
    def steps(self) -> Normalization:
        """The steps."""
        return Normalization(**self.model_dump())
