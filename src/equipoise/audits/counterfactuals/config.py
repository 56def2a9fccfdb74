"""The configuration of an audit of counterfactual sets."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import PlainSerializer, PlainValidator

from equipoise.audits.config_fields import Name, Some, distinct
from equipoise.audits.engines.rankings import config as rankings
from equipoise.audits.engines.rankings.config import RankingAudit
from equipoise.data.lexicons import lexicon
from equipoise.metrics.rankings.measures import RankingMeasure

MEASURES: tuple[RankingMeasure, ...] = ("max_skew", "min_skew", "skew_at_k", "ndkl", "bias_at_k")


def _prefixes(value: object) -> str | tuple[str, ...]:
    """Take the name of the list of prefixes, or prefixes."""
    if value == "howard_2024":
        return "howard_2024"
    texts = value if isinstance(value, list | tuple) else ()
    fits = (isinstance(each, str) and each.strip() and each.count("{}") < 2 for each in texts)
    if not texts or not all(fits):
        raise ValueError(
            "expected howard_2024, or a list of texts such as 'A photo of a', with '{}' at most "
            "once, where the subject goes"
        )
    return distinct(tuple(texts))


Prefixes = Annotated[
    str | tuple[str, ...],
    PlainValidator(_prefixes),
    PlainSerializer(lambda value: value if isinstance(value, str) else [*value]),
]
"""Name of the list of prefixes, or prefixes."""


def openings(prefixes: str | tuple[str, ...]) -> Sequence[str]:
    """Return prefixes, those of a list by its name."""
    if isinstance(prefixes, str):
        found: Sequence[str] = lexicon(prefixes).content["prefixes"]
        return found
    return prefixes


class DataConfig(rankings.DataConfig):
    """The counterfactual sets.

    Attributes
    ----------
    images : PicturesConfig
        What the images are: a table, a folder, or a data set in its own format.
    groups : list of str or list of str
        Attributes that vary within the sets: a list within the list, their intersections.
    subject : str
        Column of what an image shows besides: each prompt ranks the images of its own subject.
    sets : str
        Column of the counterfactual set.
    """

    subject: Name = "subject"
    sets: Name = "set"


class ProtocolConfig(rankings.RankingConfig):
    """What is measured of each subject's ranking, see `RankingConfig`."""

    measures: Some[RankingMeasure] = MEASURES
    similarity: bool = False


class Config(RankingAudit):
    """The configuration of an audit of counterfactual sets; docs/audits/counterfactuals.md.

    Attributes
    ----------
    prefixes : str or list of str
        What neutral prompts of the images' subjects begin with, where there is no table of
        `queries`.
    """

    makes_queries = True
    audit: Literal["counterfactuals"]
    data: DataConfig
    prefixes: Prefixes = "howard_2024"
    ranking: ProtocolConfig = ProtocolConfig()

    def _check(self) -> None:
        super()._check()
        if self.queries is not None and self.prefixes != "howard_2024":
            raise ValueError(
                "'queries' and 'prefixes' are given; expected 'queries' for prompts of your "
                "own, or 'prefixes' to make them of the images' subjects"
            )
