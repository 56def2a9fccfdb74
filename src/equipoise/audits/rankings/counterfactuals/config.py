"""The configuration of an audit of counterfactual sets."""

from typing import Literal

from equipoise.audits.rankings import config as rankings
from equipoise.audits.rankings.config import Prefixes, RankingAudit
from equipoise.config.fields import Name


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


class MetricsConfig(rankings.MetricsConfig):
    """Which metrics of rankings are measured."""

    kind = "counterfactuals"


class Config(RankingAudit):
    """The configuration of an audit of counterfactual sets; docs/audits/counterfactuals.md."""

    audit: Literal["counterfactuals"]
    data: DataConfig
    prefixes: Prefixes | None = "howard_2024"
    metrics: MetricsConfig = MetricsConfig()
