"""Flickr30k: images with several captions each, and the split for retrieval.

Source: Karpathy and Fei-Fei 2015, `dataset_flickr30k.json` (cs.stanford.edu/people/karpathy/
deepimagesent): `images` with `filename`, `split` and `sentences`, each with its text as `raw`.
`dataset_coco.json` has the same form, with the folder of each image as `filepath`.
"""

from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from equipoise.data.formats.reading import Records, Text, data_format, read_json
from equipoise.data.image_set import ImageRecords, ImageSet, Places, image_set


class _Sentence(BaseModel):
    raw: Text


class _Image(BaseModel):
    filename: Text
    filepath: Text = ""
    split: Text
    sentences: Records[_Sentence]


class _File(BaseModel):
    images: Records[_Image]


@data_format("flickr30k")
def read_flickr30k(path: Path | str) -> ImageSet:
    """Read `dataset_flickr30k.json`.

    Parameters
    ----------
    path : path

    Returns
    -------
    ImageSet
        With the column `split` (train, val, test) and captions; ids are the files. Counts:
        "images" and "captions".

    Raises
    ------
    DataError
        When the file is cut off, lacks a key, or names an image twice.
    """
    content, digest = read_json(path, TypeAdapter(_File))
    ids = ["/".join(filter(None, (image.filepath, image.filename))) for image in content.images]
    Places(str(path), "image", ids, "images")
    captions: list[tuple[int, str]] = []
    for place, image in enumerate(content.images):
        captions += ((place, sentence.raw.strip()) for sentence in image.sentences)
    return image_set(
        ImageRecords(ids, {"split": [image.split for image in content.images]}, captions=captions),
        name=str(path),
        format="Flickr30k",
        inputs={str(path): {**digest, "rows": len(ids)}},
        counts={"images": len(ids), "captions": len(captions)},
    )
