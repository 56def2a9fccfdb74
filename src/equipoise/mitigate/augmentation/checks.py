"""What sets of images must be for an experiment to say something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import InputError
from equipoise.mitigate.augmentation.datasets import Faces

LEAST_FACES = 0.5
"""Share of a group's biased images that need a face for a verdict on mixed and noisy faces."""


def check_sets(biased: Faces, balanced: Faces, test: Faces) -> tuple[tuple[str, ...], ...]:
    """Return the classes and the groups that all three sets have.

    Raises
    ------
    InputError
        When classes or groups differ between the sets, there are not two groups and at least two
        classes, images are no squares of one size, a group has no face in the biased images, or
        a test image is among those of training.
    """
    classes = tuple(sorted({str(one) for one in biased.labels}))
    groups = tuple(sorted({str(one) for one in biased.groups}))
    for name, faces in (("balanced", balanced), ("test", test)):
        for what, known, own in (
            ("classes", classes, faces.labels),
            ("groups", groups, faces.groups),
        ):
            found = tuple(sorted({str(one) for one in own}))
            if found != known:
                raise InputError(
                    f"the {name} images have the {what} {', '.join(found)}; expected those of the "
                    f"biased ones: {', '.join(known)}"
                )
    if len(groups) != 2 or len(classes) < 2:
        raise InputError(f"{len(groups)} groups and {len(classes)} classes; expected two and more")
    sizes = {np.asarray(one).shape for faces in (biased, balanced, test) for one in faces.images}
    if len(sizes) > 1 or any(len(size) != 3 or size[0] != size[1] for size in sizes):
        shown = ", ".join(str(size) for size in sorted(sizes)[:3])
        raise InputError(f"images of the shapes {shown}; expected squares of one size, (s, s, 3)")
    _check_faces(biased)
    shared = shared_images(test, {"biased": biased, "balanced": balanced})
    if shared:
        place, name, other = shared[0]
        raise InputError(
            f"{len(shared)} of {len(test)} test images are also trained on: test image {place} is "
            f"image {other} of the {name} ones; expected none"
        )
    return classes, groups


def shared_images(test: Faces, training: Mapping[str, Faces]) -> list[tuple[int, str, int]]:
    """Find the test images that are trained on: the same pixels, whatever file they come from.

    Parameters
    ----------
    test : Faces
    training : mapping of str to Faces
        By name.

    Returns
    -------
    list of (int, str, int)
        Place of each such test image, in order; the name of the first set that has it, and its
        first place there.
    """
    seen: dict[bytes, tuple[str, int]] = {}
    for name, faces in training.items():
        for place, image in enumerate(faces.images):
            seen.setdefault(_digest(image), (name, place))
    found = ((place, seen.get(_digest(image))) for place, image in enumerate(test.images))
    return [(place, *where) for place, where in found if where is not None]


def _digest(image: NDArray[np.uint8]) -> bytes:
    return sha256(np.ascontiguousarray(image).data).digest()


def counted(faces: Faces) -> dict[tuple[str, str], int]:
    """Count the images of each class and group; a pair that none has is counted, too."""
    pairs = [
        (str(label), str(group)) for label, group in zip(faces.labels, faces.groups, strict=True)
    ]
    classes, groups = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
    many = Counter(pairs)
    return {(label, group): many[label, group] for label in classes for group in groups}


def _check_faces(biased: Faces) -> None:
    """Refuse biased images in which a group has no face: nothing would be mixed."""
    missing = biased.regions.missing(biased.groups)
    without = [group for group, (count, of) in missing.items() if count == of]
    if not without:
        return
    told = ", ".join(f"{group} {of - count} of {of}" for group, (count, of) in missing.items())
    raise InputError(
        f"biased images: no face was found in any image of {' or of '.join(without)} (found: "
        f"{told}), so that no face could be mixed with one of the other group. To do: give the "
        "boxes of faces in columns, or another detector"
    )


def few_faces(missing: Mapping[str, tuple[int, int]]) -> str:
    """Return why changing faces is not judged where a group has few; empty where it is.

    Parameters
    ----------
    missing : mapping of str to (int, int)
        By group: biased images without a face, and all.
    """
    few = [
        f"{of - count} of {of} biased images of {group}"
        for group, (count, of) in missing.items()
        if of - count < LEAST_FACES * of
    ]
    if not few:
        return ""
    return (
        f"a face was found in {' and '.join(few)} only, fewer than half, and the others were "
        "trained on as they are"
    )
