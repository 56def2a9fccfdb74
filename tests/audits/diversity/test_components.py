"""Projections on components that the images do not allow are refused before any measuring."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from audits.diversity.test_diversity import by_metric, config, run
from equipoise import audits
from equipoise.core import DataError


@pytest.mark.parametrize("step", [audits.plan, audits.run])
def test_components_that_do_not_fit_are_refused(step: Callable[[Any], Any]) -> None:
    told = (
        "images (data frame): metrics.components: 7 is more than the images of m, region "
        "(north: 40, south: 40) or the 6 numbers of an embedding allow. Expected: at most 6. "
        "To do: lower metrics.components to 6, or leave it out."
    )
    with pytest.raises(DataError) as caught:
        step(config(metrics={"components": 7}))
    assert str(caught.value) == told


def test_components_may_be_as_many_as_images_of_sets_and_references() -> None:
    wide = np.random.default_rng(2).standard_normal((84, 200))
    given = {"models": {"m": {"file": wide}}, "metrics": {"components": 100}}
    with pytest.raises(DataError, match="Expected: at most 80"):
        run(**given)
    stock = pl.DataFrame({"image": [f"r{k}" for k in range(30)]})
    references = {
        "stock": {
            "images": {"table": stock, "id": "image"}, "models": {"m": {"file": wide[:30]}},
        }
    }  # fmt: skip
    found = by_metric(run(**given, references=references))
    assert found["iss_cross", ""].value > 0
