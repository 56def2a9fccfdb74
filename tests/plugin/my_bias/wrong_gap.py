from equipoise import metrics


@metrics.metric(
    metrics.MetricSpec(
        name="wrong_gap",
        title="Gap of wrong predictions",
        kinds=("predictions",),
        definition="Largest minus smallest share of wrong predictions over groups.",
        direction="Higher: the model is wrong more often for one group.",
        reference="yours",
        unit="points",
        threshold=0.05,
        threshold_reason="five points matter to us",
        null="groups are exchangeable over all rows",
    ),
    form=metrics.CountMetric,
)
def wrong_gap(counts, tables):
    """Return the gap of each table, shape (tables,)."""
    wrong = counts.truth != counts.prediction
    shares = tables[:, wrong].sum(axis=1) / tables.sum(axis=1)
    return shares.max(axis=1) - shares.min(axis=1)
