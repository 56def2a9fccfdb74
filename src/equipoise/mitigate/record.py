"""What decides a model that a recipe makes: settings, base, seed, data, libraries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from equipoise import __version__
from equipoise.mitigate.sets import SubjectTexts, content_of
from equipoise.models.wrapped import SETTINGS

if TYPE_CHECKING:
    from equipoise.models import DualEncoder


RECORD = "mitigation.json"
"""Beside the weights of a model that was trained."""


def record_of(
    facts: Mapping[str, Any],
    base: DualEncoder,
    seed: int,
    inputs: Mapping[str, Any],
    torch: Any = None,
) -> dict[str, Any]:
    """Return the record that stands beside a model; nothing of when or where it was made."""
    versions = {"equipoise": __version__}
    if torch is not None:
        versions["torch"] = str(torch.__version__)
    record = {
        **facts,
        "base": {"key": base.info.key, "weights_sha256": base.info.weights_sha256},
        "seed": seed,
        "inputs": dict(inputs),
        "versions": versions,
    }
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    return {**record, "digest": digest}


def made(out: Path, record: Mapping[str, Any]) -> bool:
    """Whether a folder holds the model of this record already, whole."""
    try:
        if (out / RECORD).is_file():
            told = json.loads((out / RECORD).read_text(encoding="utf-8"))
        else:
            told = json.loads((out / SETTINGS).read_text(encoding="utf-8"))["record"]
        return bool(told["digest"] == record["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def reloaded(name: str, base: DualEncoder) -> DualEncoder:
    """Load a model that was just written, where and in the numbers of the one it was made of."""
    from equipoise.models import load_model

    info = base.info
    backend = "auto" if info.backend == "torch" else info.backend
    found = load_model(
        name, device=info.device, dtype=info.dtype, backend=backend, trust_remote_code=True
    )
    return cast("DualEncoder", found)


def digest_of_texts(texts: Sequence[SubjectTexts]) -> str:
    """Return a SHA-256 of what is said of subjects."""
    told = [[one.subject, one.neutral, one.attributed, [*map(dict, one.values)]] for one in texts]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def digest_of_images(images: Any, *columns: npt.NDArray[np.object_]) -> str:
    """Return a SHA-256 of images and of what is said of each."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(json.dumps(column.tolist()).encode())
    for row in range(len(images)):
        digest.update(content_of(images, row))
    return digest.hexdigest()
