"""How an audit draws: the resampling object that a configuration describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.stats.resampling import Bootstrap, Resampling

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig


def resampling_of(config: AuditConfig, tests: int) -> Resampling | None:
    """Return the resampling object that a configuration describes.

    Parameters
    ----------
    config : AuditConfig
    tests : int
        How many tests the audit will make, so that p-values are drawn finely enough.
    """
    options = config.resampling
    if options.method == "none":
        return None
    finest = config.testing.alpha / (10 * max(tests, 1))
    if options.permutations is not None:
        finest = max(finest, 1.0 / options.permutations)
    least = options.permutations or options.replicates
    return Bootstrap(options.replicates, least, options.level, finest)
