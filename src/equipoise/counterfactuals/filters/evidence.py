"""What every image, pair and set was held against, as tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.counterfactuals.filters.candidates import Candidates
from equipoise.counterfactuals.filters.filtered import Filtered
from equipoise.counterfactuals.filters.stages import Check


def evidence(filtered: Filtered) -> dict[str, pa.Table]:
    """Return the evidence of every stage.

    Parameters
    ----------
    filtered : Filtered

    Returns
    -------
    dict of str to pyarrow.Table
        `filter_images`, `filter_pairs` and `filter_sets`: `stage`, `check`, the `set` (candidate)
        and image or images, `value`, `threshold`, `passed`, and of images and sets a `reason`.
        All candidates are there, those that an earlier stage rejected, too: `reached` says which
        sets came as far.
    """
    found: dict[str, list[pa.Table]] = {"filter_images": [], "filter_pairs": [], "filter_sets": []}
    candidates = filtered.candidates
    for place, stage in enumerate(filtered.stages):
        for check in stage.checks:
            found["filter_images"].append(_of_images(candidates, stage.name, check))
            found["filter_pairs"] += _of_pairs(candidates, stage.name, check)
            found["filter_sets"].append(
                _of_sets(candidates, stage.name, check, filtered.entering[place])
            )
    return {
        name: pa.concat_tables(tables).unify_dictionaries()
        for name, tables in found.items()
        if tables
    }


def _coded(codes: npt.NDArray[np.int64], names: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names)


def _same(text: str, n: int) -> pa.DictionaryArray:
    return _coded(np.zeros(n, dtype=np.int64), pa.array([text]))


def _texts(texts: npt.NDArray[np.object_]) -> pa.DictionaryArray:
    return pa.array(texts, pa.string()).dictionary_encode()


def _of_images(candidates: Candidates, stage: str, check: Check) -> pa.Table:
    rows = np.flatnonzero(~np.isnan(check.rejected))
    n = len(rows)
    return pa.table(
        {
            "stage": _same(stage, n),
            "check": _same(check.name, n),
            "set": _coded(candidates.candidate[rows], pa.array(candidates.names)),
            "image_id": pa.array(candidates.columns["image_id"][rows], pa.string()),
            "value": check.value[rows],
            "threshold": np.full(n, check.threshold),
            "passed": check.rejected[rows] == 0,
            "reason": _texts(check.reason[rows]),
        }
    )


def _of_pairs(candidates: Candidates, stage: str, check: Check) -> Iterator[pa.Table]:
    if check.pairs is None:
        return
    pairs, ids = check.pairs, pa.array(candidates.columns["image_id"], pa.string())
    n = len(pairs.value)
    yield pa.table(
        {
            "stage": _same(stage, n),
            "check": _same(check.name, n),
            "set": _coded(candidates.candidate[pairs.first], pa.array(candidates.names)),
            "image_id": _coded(pairs.first, ids),
            "other_id": _coded(pairs.second, ids),
            "value": pairs.value,
            "threshold": np.full(n, check.threshold),
            "passed": pairs.value > check.threshold,
        }
    )


def _of_sets(
    candidates: Candidates, stage: str, check: Check, reached: npt.NDArray[np.bool_]
) -> pa.Table:
    n = len(candidates)
    if check.pairs is None:
        told = [
            f"{good:g} of {size} images pass, {least:g} needed"
            for good, size, least in zip(
                check.set_value, candidates.sizes, check.set_threshold, strict=True
            )
        ]
    else:
        told = [f"least alike: {value:.4g}" for value in check.set_value]
    return pa.table(
        {
            "stage": _same(stage, n),
            "check": _same(check.name, n),
            "set": pa.array(candidates.names, pa.string()),
            "reached": reached,
            "value": check.set_value,
            "threshold": check.set_threshold,
            "passed": check.passed,
            "reason": _texts(np.where(check.passed, "", np.array(told, dtype=object))),
        }
    )
