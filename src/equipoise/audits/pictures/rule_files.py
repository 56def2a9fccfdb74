"""Rules that read a file, or take what they need in another form than a configuration has it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from equipoise.data import (
    ClassMapping,
    LeaveOutImages,
    LeaveOutLabels,
    leave_out_visual_genome,
    read_class_mapping,
    read_visual_genome_images,
)
from equipoise.data.files import read_whole
from equipoise.data.formats.rows import utf8_text


def class_mapping(file: Path, name: str | None) -> ClassMapping:
    """Return the mapping of a file."""
    return read_class_mapping(file, name=name)


def leave_out_images(why: str, ids: Sequence[str], file: Path | None) -> LeaveOutImages:
    """Return the rule that leaves out images of the ids given, or of those in a file."""
    return LeaveOutImages(frozenset(ids if file is None else _lines(file)), why)


def leave_out_labels(labels: Sequence[str], why: str) -> LeaveOutLabels:
    """Return the rule that leaves out some labels."""
    return LeaveOutLabels(frozenset(labels), why)


def leave_out_visual_genome_of(file: Path) -> LeaveOutImages:
    """Return the rule that leaves out the images that `image_data.json` lists."""
    return leave_out_visual_genome(read_visual_genome_images(file))


def _lines(file: Path) -> list[str]:
    content = read_whole(file, ".txt", "the id of an image in every line")
    return [line.strip() for line in utf8_text(content, str(file)).splitlines() if line.strip()]
