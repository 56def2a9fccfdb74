from equipoise import metrics


@metrics.metric(
    metrics.MetricSpec(
        name="top_share",
        title="Largest share of the first images",
        kinds=("retrieval", "counterfactuals"),
        definition="Largest share of a group in the top K; mean over queries.",
        direction="Higher: one group fills the top.",
        reference="yours",
        unit="share",
        neutral=None,
        threshold=0.05,
        threshold_reason="five points matter to us",
    ),
    form=metrics.RankingMetric,
)
def top_share(ranked):
    """Return the largest share of any group, for each draw and query: (draws, queries)."""
    return ranked.shares.max(axis=-1)
