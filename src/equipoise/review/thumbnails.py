"""The images of a run as small pictures inside a page."""

import base64
from collections.abc import Sequence
from pathlib import Path

from equipoise.audits.config import AuditConfig, LabelledImagesConfig
from equipoise.audits.gallery import small_jpeg
from equipoise.config.images import PicturesConfig
from equipoise.core import DataError, RunError
from equipoise.evidence import ImageError, Pictures, pictures_in_folder, read_pictures
from equipoise.evidence.examples import names_files

_SIDE = 360


def find_images_section(config: AuditConfig) -> PicturesConfig | None:
    """Return the section of a run's images, or None."""
    section = getattr(config, "data", None)
    images = getattr(section, "images", None)
    if isinstance(section, LabelledImagesConfig):
        images = section.pictures
    return images if isinstance(images, PicturesConfig) else None


def find_pictures(run: Path, folder: Path | None = None) -> Pictures:
    """Return the pictures of a run.

    Parameters
    ----------
    run : Path
    folder : Path, optional
        Folder whose files are named by the ids, with or without their endings; where the run says
        unless given.

    Raises
    ------
    RunError
        If the images have no paths.
    DataError
        If the folder has no images.
    """
    if folder is not None:
        return pictures_in_folder(folder)
    if not names_files(run):
        raise RunError(
            f"{run}: the run doesn't name the folder of its images. To do: name it with --images"
        )
    return read_pictures(run)


def thumbnails(pictures: Pictures, ids: Sequence[str]) -> list[str]:
    """Return images as data URLs of small JPEG files without metadata.

    Raises
    ------
    DataError
        If an image is not there or can't be read.
    MissingExtraError
        If Pillow is not installed.
    """
    places, urls = index_pictures(pictures), []
    for name in ids:
        place = places.get(name)
        if place is None:
            raise DataError(
                f"there is no image {name!r}", file=pictures.name,
                expected="a file for each image of the run, named by its id",
                fix="give the folder that holds all of them with --images",
            )  # fmt: skip
        try:
            picture = small_jpeg(pictures.decoded(place), _SIDE)
        except (ImageError, OSError) as error:
            reason = error.reason if isinstance(error, ImageError) else error.strerror or str(error)
            raise DataError(
                reason, file=pictures.where(place), fix="repair the file, or label another --seed"
            ) from None
        urls.append(f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}")
    return urls


def index_pictures(pictures: Pictures) -> dict[str, int]:
    """Return the place of each picture by id, with and without file ending."""
    stems = {name.rpartition(".")[0]: place for name, place in pictures.places.items()}
    return {**stems, **pictures.places}
