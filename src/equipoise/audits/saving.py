"""What an audit writes into a run beside its findings."""

from collections.abc import Sequence
from pathlib import Path

from equipoise.audits.opening import AnyInputs
from equipoise.audits.outputs import IMAGES
from equipoise.core import Groups, Objects
from equipoise.core.writing import copy
from equipoise.evidence import Pictures, write_examples
from equipoise.evidence.examples import relocate_files
from equipoise.evidence.run_labels import copy_labels
from equipoise.evidence.rundir import read_list

MOST_LISTED = 200_000
"""Images that a run lists without their files: a million take as long to list as to audit."""


def save(inputs: AnyInputs, folder: Path) -> None:
    """Write the files of `compare_runs`, and the images behind the findings.

    Of more than `MOST_LISTED` images, those behind findings are written where their files are
    known, which a review shows.
    """
    config, data = inputs.config, inputs.data
    inputs.audit.save(folder, data)
    image_set = inputs.models.sets.get(IMAGES)
    boxes = None if image_set is None else image_set.boxes
    ids, groups, pictures = list_images(inputs)
    if pictures or len(ids) <= MOST_LISTED:
        seed = config.resampling.seed
        write_examples(folder, ids, groups, pictures, inputs.examples, seed, boxes)


def copy_files(run: Path, folder: Path) -> None:
    """Copy the files and the labels of a run into the folder of another."""
    names = read_list(run) or {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        if name in names and path.is_file() and not path.is_symlink():
            copy(path, folder / name)
    copy_labels(run, folder)
    relocate_files(run, folder)


def has_examples(inputs: AnyInputs) -> bool:
    """Whether `save` writes where the pictures of the images are."""
    return bool(list_images(inputs)[-1])


def list_images(inputs: AnyInputs) -> tuple[Objects, Sequence[Groups], Sequence[Pictures]]:
    """Return the ids, groups and pictures of the images; no pictures where these are gone."""
    return inputs.audit.pictured(inputs.config, inputs.data, inputs.models)
