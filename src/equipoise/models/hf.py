"""The prefix ``hf:``: checkpoints of transformers, by what their architecture can do."""

from collections.abc import Callable
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models import hf_dual
from equipoise.models.hf_files import find_checkpoint
from equipoise.models.hf_loading import Source
from equipoise.models.options import Options
from equipoise.models.runtimes import place, transformers


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
    placement = place(options.device, options.dtype, "hf")
    checkpoint = find_checkpoint(target, options)
    return _loader(checkpoint.architecture, target)(Source(checkpoint, options, placement, library))


def _loader(architecture: str, target: str) -> Callable[[Source], Any]:
    if architecture in hf_dual.FAMILIES:
        return hf_dual.load_dual_encoder
    known = sorted(hf_dual.FAMILIES)
    raise ModelError(
        f"{target} is a {architecture or 'model without a named architecture'}, which equipoise "
        f"cannot audit. There are {', '.join(known)}. To do: write a factory and name it "
        "python:module:factory."
    )
