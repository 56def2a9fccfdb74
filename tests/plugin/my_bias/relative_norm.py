import numpy as np

from equipoise import metrics


@metrics.metric(
    metrics.MetricSpec(
        name="relative_norm",
        title="Relative norm distance",
        kinds=("associations",),
        definition="Mean distance of the targets from the second set less that from the first.",
        direction="Either: positive is closer to the first set, negative to the second.",
        reference="Garg et al. 2018",
        range=(-2.0, 2.0),
        harm="either",
        threshold=0.02,
        threshold_reason="a fiftieth of the length of a vector matters to us",
    ),
    form=metrics.VectorMetric,
)
def relative_norm(targets, a, b):
    """Return the number of unit vectors, each set of shape (members, d)."""
    near, far = (np.linalg.norm(targets - side.mean(axis=0), axis=1).mean() for side in (a, b))
    return far - near
