"""Flipped bits in stored evidence: the file is named, and computed again or refused."""

import logging

import numpy as np
import pyarrow.parquet as pq
import pytest

from equipoise.core import DataError
from equipoise.counterfactuals import GenerationSettings, generate_prompts, read_generated
from equipoise.evidence import (
    ExtractionSettings,
    embed_texts,
    extract_embeddings,
    pictures_in_folder,
)
from generator_models import Swatches, prompts
from picture_models import Means


def damage(path, column):
    """Flip a bit of the values of a column; return the bytes before."""
    content = path.read_bytes()
    group = pq.read_metadata(path).row_group(0)
    chunk = next(
        group.column(number)
        for number in range(group.num_columns)
        if group.column(number).path_in_schema.split(".")[0] == column
    )
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    damaged = bytearray(content)
    damaged[start + chunk.total_compressed_size - 2] ^= 4
    path.write_bytes(damaged)
    return content


def named(caught):
    return [str(record.args[0]) for record in caught.records if record.name == "equipoise"]


def test_a_damaged_part_is_named_and_computed_again(photos, store, caplog):
    pictures = pictures_in_folder(photos)
    first = extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=2))
    damaged = first.parts[1:5]
    contents = [damage(path, "embedding") for path in damaged]
    with caplog.at_level(logging.WARNING):
        second = extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=2))
    assert sorted(named(caplog)) == sorted(map(str, damaged))
    assert second.computed == 8
    assert [path.read_bytes() for path in damaged] == contents
    assert second.inputs == first.inputs


def test_damaged_failures_are_noticed(photos, store):
    (photos / "00001.png").write_bytes(b"no picture")
    pictures = pictures_in_folder(photos)
    first = extract_embeddings(
        pictures, Means(), store, settings=ExtractionSettings(part=20, max_failures=0.1)
    )
    content = first.parts[0].read_bytes()
    first.parts[0].write_bytes(content.replace(b"00001.png", b"00003.png"))
    second = extract_embeddings(
        pictures, Means(), store, settings=ExtractionSettings(part=20, max_failures=0.1)
    )
    assert second.failures["image_id"].to_pylist() == ["00001.png"]
    assert first.parts[0].read_bytes() == content


def test_a_damaged_part_without_its_images_is_refused(photos, store):
    pictures = pictures_in_folder(photos)
    first = extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=8))
    damage(first.parts[0], "embedding")
    for place in range(8):
        (photos / f"{place:05d}.png").unlink()
    with pytest.raises(DataError) as caught:
        extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=8))
    assert caught.value.file == pictures.name


def test_vectors_of_texts_are_computed_again(store, caplog):
    words = [f"{letter} word" for letter in "abcdefgh"]
    first = embed_texts(words, Means(), store)
    (path,) = store.rglob("*.parquet")
    damage(path, "embedding")
    with caplog.at_level(logging.WARNING):
        second = embed_texts(words, Means(), store)
    assert named(caplog) == [str(path)]
    assert second.computed == 8
    assert np.array_equal(second.vectors, first.vectors)


@pytest.mark.parametrize("column", ["image", "prompt", "seed"])
def test_made_images_are_made_again(column, store, caplog):
    first = generate_prompts(
        prompts(), Swatches(), store, images=3, settings=GenerationSettings(part=4)
    )
    path = sorted(first.folder.glob("part-*"))[1]
    images, content = pq.read_metadata(path).num_rows, damage(path, column)
    with caplog.at_level(logging.WARNING):
        second = generate_prompts(
            prompts(), Swatches(), store, images=3, settings=GenerationSettings(part=4)
        )
    assert named(caplog) == [str(path)]
    assert second.computed == images
    assert path.read_bytes() == content


def test_a_damaged_image_is_not_read(store):
    generated = generate_prompts(
        prompts(), Swatches(), store, images=3, settings=GenerationSettings(part=100)
    )
    (path,) = generated.folder.glob("part-*")
    damage(path, "image")
    reread = read_generated(generated.folder)
    with pytest.raises(OSError, match=str(path)):
        reread.pictures.read(0)


def test_a_damaged_table_of_images_is_named(store):
    generated = generate_prompts(prompts(), Swatches(), store, images=3)
    damage(generated.folder / "images.parquet", "seed")
    with pytest.raises(DataError) as caught:
        read_generated(generated.folder)
    assert caught.value.file == str(generated.folder / "images.parquet")
