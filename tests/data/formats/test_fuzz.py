"""Files with flipped bits, cut off or of other types: read, or refused with our error."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.core import DataError
from equipoise.data import (
    ImageSet,
    read_celeba,
    read_coco_captions,
    read_coco_instances,
    read_dollar_street,
    read_fairface,
    read_huggingface,
    read_pata,
    read_social_counterfactuals,
    read_visogender,
    read_visual_genome,
)
from image_files import (
    CELEBA,
    COCO_CAPTIONS,
    COCO_INSTANCES,
    DOLLAR_STREET,
    FAIRFACE,
    PATA,
    SOCIAL,
    VG_OBJECTS,
    VISOGENDER,
    celeba,
    celeba_csv,
    hugging_face,
    pata,
    write_csv,
    write_json,
)

READERS: dict[str, tuple[Callable[[Path], ImageSet], Callable[[Path], Path]]] = {
    "captions": (read_coco_captions, lambda f: write_json(f / "c.json", COCO_CAPTIONS)),
    "instances": (read_coco_instances, lambda f: write_json(f / "i.json", COCO_INSTANCES)),
    "objects": (read_visual_genome, lambda f: write_json(f / "o.json", VG_OBJECTS)),
    "fairface": (read_fairface, lambda f: write_csv(f / "f.csv", FAIRFACE)),
    "dollar street": (read_dollar_street, lambda f: write_csv(f / "d.csv", DOLLAR_STREET)),
    "social": (read_social_counterfactuals, lambda f: write_csv(f / "m.csv", SOCIAL)),
    "visogender": (read_visogender, lambda f: write_csv(f / "v.tsv", VISOGENDER, "\t")),
    "pata": (read_pata, lambda f: pata(f, PATA)),
    "parquet": (read_huggingface, lambda f: hugging_face(f / "h.parquet")),
    "arrow": (read_huggingface, lambda f: hugging_face(f / "h.arrow")),
    "celeba": (read_celeba, lambda f: celeba(f, CELEBA)),
    "celeba csv": (read_celeba, lambda f: celeba_csv(f, CELEBA)),
}


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """Flip bits, cut off, repeat or remove a part."""
    data = bytearray(raw)
    kind = chance.randrange(4)
    start = chance.randrange(len(data))
    end = min(len(data), start + chance.randrange(1, 40))
    if kind == 0:
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == 1:
        del data[start:]
    elif kind == 2:
        data[start:start] = data[start:end]
    else:
        del data[start:end]
    return bytes(data)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    read, write = READERS[name]
    path = write(tmp_path)
    raw, chance = path.read_bytes(), random.Random(name)
    messages = []
    for _ in range(150):
        path.write_bytes(damaged(raw, chance))
        try:
            assert len(read(path)) > 0
        except DataError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert [message for message in messages if str(path) not in message] == []
