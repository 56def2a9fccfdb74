"""What an audit writes into a run beside its findings."""

from collections.abc import Sequence
from pathlib import Path

from equipoise.audits.opening import AnyInputs
from equipoise.audits.outputs import IMAGES
from equipoise.core import Groups, Objects
from equipoise.evidence import Pictures, write_examples


def save(inputs: AnyInputs, folder: Path) -> None:
    """Write the files of `compare_runs`, and the images behind the findings."""
    config, data = inputs.config, inputs.data
    inputs.audit.save(folder, data)
    image_set = inputs.models.sets.get(IMAGES)
    boxes = None if image_set is None else image_set.boxes
    ids, groups, pictures = list_images(inputs)
    seed = config.resampling.seed
    write_examples(folder, ids, groups, pictures, inputs.examples, seed, boxes)


def has_examples(inputs: AnyInputs) -> bool:
    """Whether `save` writes where the pictures of the images are."""
    return bool(list_images(inputs)[-1])


def list_images(inputs: AnyInputs) -> tuple[Objects, Sequence[Groups], Sequence[Pictures]]:
    """Return the ids, groups and pictures of the images; no pictures where these are gone."""
    return inputs.audit.pictured(inputs.config, inputs.data, inputs.models)
