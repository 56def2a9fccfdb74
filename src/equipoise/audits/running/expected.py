"""What a model will be, told without loading it: from an earlier run, or from its settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.audits.running.capability import Offer
from equipoise.audits.running.opened import offer_of
from equipoise.audits.running.remembered import recalled
from equipoise.core.files import read_regular


@dataclass(frozen=True)
class Expected:
    """What is known of a model that was not loaded.

    Attributes
    ----------
    offer : str or None
    labels : tuple of str
        Classes of a classifier; () where they are not known.
    dimension : int or None
        Length of a vector.
    """

    offer: Offer | None = None
    labels: tuple[str, ...] = ()
    dimension: int | None = None


def expected(model: Any, store: Path) -> Expected:
    """Return what is known of a model: nothing is loaded, nothing is fetched.

    Parameters
    ----------
    model : str or model
        A name, folders in full; or a loaded model.
    store : Path
        Folder of the evidence, where what models are is kept.
    """
    if not isinstance(model, str):
        return Expected(offer_of(model), tuple(getattr(model, "labels", ())), model.info.dimension)
    known = recalled(model, store)
    if known is not None:
        return Expected(known.offer, known.labels, known.info.dimension)
    prefix, _, target = model.partition(":")
    if prefix == "hf":
        return _of_checkpoint(_settings(target))
    if prefix == "onnx":
        return Expected("classifier", _lines(Path(target).with_suffix(".labels.txt")))
    return Expected({"open_clip": "encoder", "timm": "classifier"}.get(prefix))  # type: ignore[arg-type]


def _settings(target: str) -> Mapping[str, Any]:
    """Return config.json of a folder, or of a repository in the local cache; {} without."""
    from equipoise.models.hub import cached

    here = Path(target).expanduser() / "config.json"
    path = here if here.is_file() else cached(target, "config.json")
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_checkpoint(settings: Mapping[str, Any]) -> Expected:
    from equipoise.models.hf import ANSWERERS, ENCODERS, SCORERS

    architecture = next(iter(settings.get("architectures") or []), "")
    if architecture in ENCODERS:
        return Expected("encoder", dimension=settings.get("projection_dim"))
    if architecture in SCORERS:
        return Expected("scorer")
    if architecture in ANSWERERS:
        return Expected("answerer")
    if architecture.endswith("ForImageClassification"):
        names = settings.get("id2label") or {}
        labels = tuple(str(names[number]) for number in sorted(names, key=int))
        return Expected("classifier", labels, settings.get("hidden_size"))
    return Expected()


def _lines(path: Path) -> tuple[str, ...]:
    try:
        every = read_regular(path).decode("utf-8").splitlines()
    except (OSError, ValueError):
        return ()
    return tuple(name for line in every if (name := line.strip()))


def not_looked_up(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the note on models that need a library to be looked up."""
    from equipoise.models.hub import is_installed

    models = dict.fromkeys(one["runs"] for one in runs if one["runs"].startswith("hf:"))
    if models and not is_installed():
        yield (
            f"huggingface_hub is not installed, so {', '.join(models)} was not looked up in the "
            "hub's local cache, and an audit cannot run it. To do: pip install 'equipoise[hf]'."
        )
