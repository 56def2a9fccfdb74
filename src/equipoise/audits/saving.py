"""What an audit writes into a run beside its findings."""

from collections.abc import Sequence
from pathlib import Path

from equipoise.audits.opening import AnyInputs
from equipoise.audits.outputs import IMAGES
from equipoise.core import DataError, Groups, Objects
from equipoise.evidence import Pictures, write_examples


def save(inputs: AnyInputs, folder: Path) -> None:
    """Write the files of `compare_runs` and the examples of `equipoise review`.

    Examples are written where the config says where the pictures are.
    """
    config, data = inputs.config, inputs.data
    inputs.audit.save(folder, data)
    image_set = inputs.models.sets.get(IMAGES)
    boxes = None if image_set is None else image_set.boxes
    ids, groups, pictures = _pictured(inputs)
    if pictures:
        seed = config.resampling.seed
        write_examples(folder, ids, groups, pictures, inputs.examples, seed, boxes)


def has_examples(inputs: AnyInputs) -> bool:
    """Whether `save` writes the images behind findings."""
    return bool(_pictured(inputs)[-1])


def _pictured(inputs: AnyInputs) -> tuple[Objects, Sequence[Groups], Sequence[Pictures]]:
    """Return the images behind findings; without pictures where these are gone.

    A model that needed them has refused to run by then.
    """
    try:
        return inputs.audit.pictured(inputs.config, inputs.data, inputs.models)
    except DataError:
        return inputs.data.ids, (), ()
