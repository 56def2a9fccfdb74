import numpy as np

from equipoise import metrics
from equipoise.audits.findings import Place, whole
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.config.fields import located
from equipoise.core import Family, Groups, record
from equipoise.data.tables import read_table


@metrics.metric(
    metrics.MetricSpec(
        name="rating_gap",
        title="Gap of ratings",
        kinds=("ratings",),
        definition="Largest minus smallest share of one rating over groups.",
        direction="Higher: raters favour one group.",
        reference="yours",
        unit="points",
        threshold=0.05,
    )
)
def rating_gap(ratings, groups, *, resampling=None, rng=0):
    """Return the gap as an estimate."""
    return metrics.demographic_parity(None, ratings, groups, resampling=resampling, rng=rng)


@record
class Ratings:
    ids: np.ndarray
    ratings: np.ndarray
    groups: Groups
    inputs: dict
    counts: dict


@record
class Design:
    model: str
    groups: Groups
    lacking: dict
    resolved_tests: int = 1

    def seconds(self, draws):
        return draws * 1e-5


@audit_kind("ratings")
class RatingsAudit(Audit):
    def load(self, config, models):
        data = config.data
        table = read_table(
            located(data.table, models.base), texts=(data.id, data.rating, data.group)
        )
        texts = {name: column.to_numpy() for name, column in table.texts.items()}
        groups = Groups.of({data.group: texts[data.group]})
        inputs = {table.name: dict(table.digest)}
        return Ratings(texts[data.id], texts[data.rating], groups, inputs, {"rows": table.rows})

    def groups(self, config, data):
        return [data.groups]

    def designs(self, config, data):
        return [Design("raters", data.groups, {})]

    def measure(self, config, data, design, resampling):
        estimate = rating_gap(
            data.ratings, design.groups, resampling=resampling, rng=config.resampling.seed
        )
        place = Place(self.name, design.model, design.groups.name, "default", 0.95)
        return Measured((whole(estimate, place, Family.LEAF, metric="rating_gap"),))
