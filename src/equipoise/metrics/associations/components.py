"""The four associations that MCAS adds up, of means and of resampled sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from equipoise.metrics.associations.resampling import mean_vectors, row_dots
from equipoise.metrics.associations.space import Sets

Floats = npt.NDArray[np.float64]

COMPONENTS = ("II", "ITP", "ITA", "TT")
SIDES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "II": ("images", "target_images"),
        "ITP": ("images", "target_texts"),
        "ITA": ("texts", "target_images"),
        "TT": ("texts", "target_texts"),
    }
)
"""Attribute set and target set of each component."""


def components_of(means: Mapping[str, Floats]) -> Floats:
    """Return II, ITP, ITA and TT from mean vectors (r, d) of every set, shape (r, 4)."""
    apart = {kind: means[f"a_{kind}"] - means[f"b_{kind}"] for kind in ("images", "texts")}
    return np.stack([row_dots(apart[kind], means[target]) for kind, target in SIDES.values()], 1)


def resampled_components(sets: Sets) -> Callable[[Mapping[str, Floats]], Floats]:
    """Return what gives the components of resampled sets, from weights (r, n), shape (r, 4).

    Means of similarities to the targets are taken anew where these are fewer numbers than vectors.
    """
    targets = {name: sets[name] for name in ("target_images", "target_texts")}
    if sum(map(len, targets.values())) >= targets["target_images"].dimension:
        return lambda weights: components_of(
            {name: mean_vectors(weights[name], one) for name, one in sets.items()}
        )
    every = np.concatenate([one.vectors for one in targets.values()])
    similar = {name: one.similarities(every) for name, one in sets.items() if name not in targets}
    images = len(targets["target_images"])
    columns = {"target_images": slice(images), "target_texts": slice(images, None)}

    def components(weights: Mapping[str, Floats]) -> Floats:
        near = {name: mean_vectors(weights[name], rows) for name, rows in similar.items()}
        found = []
        for kind, target in SIDES.values():
            apart = near[f"a_{kind}"] - near[f"b_{kind}"]
            times = weights[target]
            with np.errstate(invalid="ignore"):
                found.append(row_dots(times, apart[:, columns[target]]) / times.sum(axis=1))
        return np.stack(found, axis=1)

    return components
