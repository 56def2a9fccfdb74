"""Vectors of words are read as they are written, or refused with the row and what to do."""

import hashlib

import numpy as np
import polars as pl
import pytest

from equipoise.core import DataError
from equipoise.data import ArraySource, ItemSource, load_items, load_vectors

WORDS = ["man", "woman", "New York"]
LINES = ["man 1 0 0", "other 9 9 9", "woman 0 1 0", "New York 1 1 0.5"]
VECTORS = [[1, 0, 0], [0, 1, 0], [1, 1, 0.5]]
TEXT = "".join(f"{line}\n" for line in LINES)
BINARY = b"2 3\n" + b"".join(
    word + b" " + np.array([1, 2, 3], "<f4").tobytes() + b"\n" for word in (b"man", b"woman")
)


def load(path, content, words=WORDS):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    items = load_items(ItemSource(pl.DataFrame({"word": words}), "word"))
    return load_vectors(ArraySource(path), items)


READ = {
    "GloVe": TEXT,
    "word2vec": f"4 3\n{TEXT}",
    "fastText, a space before every line break": f"4 3\n{TEXT}".replace("\n", " \n"),
    "line breaks of Windows": TEXT.replace("\n", "\r\n"),
    "tabs": "".join("\t".join(line.rsplit(" ", 3)) + "\n" for line in LINES),
    "two spaces": TEXT.replace(" 1 ", "  1 "),
    "spaces before a line": TEXT.replace("woman", "  woman"),
    "a byte order mark": "\ufeff" + TEXT,
    "blank lines": TEXT.replace("woman", "\nwoman") + "\n\n",
    "exponents": TEXT.replace("0.5", "+5.0E-1").replace(" 1 0 0", " 1. 0 .0"),
    "a word twice with one vector": TEXT + "man 1 0 0.0\n",
    "another word in another encoding": TEXT.encode() + b"caf\xe9 1 2 3\n",
}


@pytest.mark.parametrize("name", READ)
def test_text_is_read_as_it_is_written(name, tmp_path):
    vectors = load(tmp_path / "words.vec", READ[name])
    np.testing.assert_array_equal(vectors.take([0, 1, 2]), np.float32(VECTORS))
    file = tmp_path / "words.vec"
    digest = vectors.inputs[str(file)]
    assert digest["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert digest["bytes"] == file.stat().st_size


REFUSED = {
    "more words promised than there are": (f"400 3\n{TEXT}", 4),
    "fewer words promised than there are": (f"3 3\n{TEXT}", 4),
    "cut off between lines": ("4 3\n" + TEXT[:22], 2),
    "cut off in the last number": (TEXT[:-2], 4),
    "no numbers promised": (f"4 0\n{TEXT}", None),
    "more numbers promised than there are": (f"4 1000000000\n{TEXT}", 1),
    "a number missing": (TEXT.replace("woman 0", "woman"), 3),
    "a number missing after a word with a space": (TEXT.replace("York 1", "York"), 4),
    "a number too many": (TEXT.replace("woman 0", "woman 0 0"), 3),
    "NaN": (TEXT.replace("woman 0", "woman nan"), 3),
    "infinite": (TEXT.replace("woman 0", "woman inf"), 3),
    "infinite in 32 bits": (TEXT.replace("woman 0", "woman 1e39"), 3),
    "an underscore": (TEXT.replace("woman 0", "woman 1_0"), 3),
    "hexadecimal": (TEXT.replace("woman 0", "woman 0x1"), 3),
    "two vectors of a word": (TEXT + "man 9 9 9\n", 5),
    "UTF-16": (TEXT.encode("utf-16"), 1),
    "a wanted word in another encoding": (TEXT.encode() + b"caf\xe9 1 2 3\n", 5),
    "binary": (BINARY, 1),
    "a line without an end": (TEXT + "x " * (1 << 19) + "\n", 5),
    "blank": ("\n \n", None),
    "none of the words": ("dog 1 2 3\n", None),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("file", ["words.txt", "words.bin"])
def test_what_cannot_be_read_as_meant_is_refused_with_its_row(name, file, tmp_path):
    content, row = REFUSED[name]
    with pytest.raises(DataError) as raised:
        load(tmp_path / file, content, [*WORDS, "café"] if "encoding" in name else WORDS)
    error = raised.value
    assert (error.file, error.row) == (str(tmp_path / file), row)
    assert error.expected
    assert error.fix
