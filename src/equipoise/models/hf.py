"""The prefix ``hf:``: checkpoints of transformers, by what their architecture can do."""

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models import hf_answers, hf_classifier, hf_dual, hf_pairs
from equipoise.models.backends import torch_only, with_backend
from equipoise.models.hf_files import find_checkpoint
from equipoise.models.hf_loading import Source
from equipoise.models.hub import cached
from equipoise.models.options import Options
from equipoise.models.registry import Offer, Preview, adapter
from equipoise.models.runtimes import place, transformers


def _preview(target: str) -> Preview:
    """Return what config.json says, in a folder or in the local cache of a hub."""
    here = Path(target).expanduser() / "config.json"
    path = here if here.is_file() else cached(target, "config.json")
    try:
        settings = json.loads(path.read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        settings = {}
    if not isinstance(settings, dict):
        return Preview()
    architecture = next(iter(settings.get("architectures") or []), "")
    if architecture.endswith("ForImageClassification"):
        names = settings.get("id2label") or {}
        labels = tuple(str(names[number]) for number in sorted(names, key=int))
        return Preview("classifier", labels, settings.get("hidden_size"))
    offer = next((offer for offer, known in _OFFERS.items() if architecture in known), None)
    return Preview(offer, (), settings.get("projection_dim") if offer == "encoder" else None)


_OFFERS: Mapping[Offer, Collection[str]] = {
    "encoder": hf_dual.FAMILIES,
    "scorer": hf_pairs.FAMILIES,
    "answerer": hf_answers.FAMILIES,
}


@adapter("hf", preview=_preview, backends=True)
def load(target: str, options: Options) -> Any:
    """Load a checkpoint of transformers.

    Parameters
    ----------
    target : str
        Hub id or folder.
    options : Options
        What was asked.

    Returns
    -------
    DualEncoder, PairScorer, Classifier or Answerer
        Whichever its architecture is.

    Raises
    ------
    ModelError
        If it cannot be found, read or placed, or its architecture is none that equipoise knows.
    """
    library = transformers()
    placement = place(options.device, options.dtype, "hf", options.backend)
    checkpoint = find_checkpoint(target, options)
    loader = _loader(checkpoint.architecture, library)
    if loader is None:
        raise ModelError(
            f"{target} is a {checkpoint.architecture or 'model of no named architecture'}, which "
            f"equipoise cannot audit. It takes {', '.join(_known())}, …ForImageClassification, and "
            "chat models that see. To do: wrap it in a factory (python:module:factory)."
        )
    if loader in (hf_dual.load_dual_encoder, hf_classifier.load_classifier):
        placement = with_backend(placement, options, checkpoint.weights)
    else:
        torch_only(options, f"a {checkpoint.architecture}")
    return loader(Source(checkpoint, options, placement, library))


def _known() -> list[str]:
    return sorted([*hf_dual.FAMILIES, *hf_pairs.FAMILIES, *hf_answers.FAMILIES])


def _loader(architecture: str, library: Any) -> Callable[[Source], Any] | None:
    auto = library.models.auto.modeling_auto
    kinds: list[tuple[set[str], Callable[[Source], Any]]] = [
        (set(hf_dual.FAMILIES), hf_dual.load_dual_encoder),
        (set(hf_pairs.FAMILIES), hf_pairs.load_pair_scorer),
        (_names(auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES), hf_classifier.load_classifier),
        (set(hf_answers.FAMILIES), hf_answers.load_answerer),
        (_names(auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES), hf_answers.load_answerer),
    ]
    return next((load for names, load in kinds if architecture in names), None)


def _names(mapping: dict[str, str | tuple[str, ...]]) -> set[str]:
    """Return all classes of a mapping from families to a class or several."""
    return {
        name
        for value in mapping.values()
        for name in ([value] if isinstance(value, str) else value)
    }
