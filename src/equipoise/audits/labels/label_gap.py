"""The metric in which a kind of audit compares how often groups have a label."""

from equipoise.metrics.spec import SPECS


def label_gap_of(kind: str) -> str:
    """Return the gap in shares of labels that a kind of audit reports, the main one first."""
    return next(name for name, spec in SPECS.items() if spec.of_labels and kind in spec.kinds)
