"""Vectors of words in text, as word2vec, GloVe and fastText write them."""

import hashlib
import re
from collections.abc import Iterator, Set
from pathlib import Path

import numpy as np

from equipoise.core import AnyArray, DataError, Floats32
from equipoise.core.files import open_regular
from equipoise.core.types import FileFacts
from equipoise.data.files import MARKS, empty_file, translated
from equipoise.data.problems import listed, show

WORDS = (".txt", ".vec", ".bin")
"""Text; of binary files, which often have the last ending, the error says how to convert them."""
_FORMATS = ".txt or .vec"
LONGEST_LINE = 1 << 20
"""Bytes of a word and some thousand numbers: a line without an end would fill the memory."""
_HEADER = re.compile(rb"([0-9]{1,18})[ \t]+([0-9]{1,18})")
_NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBERS = re.compile(rb"%b(?: %b)*" % (_NUMBER, _NUMBER))


def read_word_vectors(path: Path, vocabulary: Set[str]) -> tuple[list[str], AnyArray, FileFacts]:
    """Read the vectors of some words: a word and its numbers in a line.

    The first line may say how many words and numbers there are, as word2vec writes it. Words may
    hold spaces, as some of GloVe do. The file is read line by line.

    Returns
    -------
    words : list of str
        Words of the vocabulary that the file has.
    values : ndarray of float32, shape (words, numbers)
    digest : mapping

    Raises
    ------
    DataError
        When no word is wanted; the file is binary, in another encoding or cut off; a wanted word
        has two vectors; or its line has other than a word and as many finite numbers as the first.
    """
    lines = _Lines(path)
    vectors = _read(lines, vocabulary)
    if not vectors:
        raise DataError(
            "none of the words is there",
            file=str(path),
            expected=f"words such as {listed(sorted(vocabulary), 3)}",
            fix="write them as the file does (case counts), or name another file",
        )
    return [*vectors], np.stack([*vectors.values()]), lines.digest


class _Lines:
    """The lines of a file that are not blank, without blanks around them.

    Attributes
    ----------
    count, width : int
        Words and numbers that the first line promises; 0 where it promises nothing.
    digest : mapping
        Once all are read.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.count, self.width = path, 0, 0
        self.digest: FileFacts = {}

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield rows, from 1 after the header, and their lines."""
        header, words = 0, 0
        for number, line in self._read_lines():
            if number == 1 and (promised := _HEADER.fullmatch(line)):
                header, (self.count, self.width) = 1, map(int, promised.groups())
                if not self.count or not self.width:
                    raise self.line_error(None, line, "how many words and numbers there are")
                continue
            if line:
                words += 1
                yield number - header, line
        if header and words != self.count:
            raise DataError(
                f"the first line promises {self.count} words and {words} lines follow",
                file=str(self._path),
                row=words or None,
                expected="as many lines as the first promises",
                fix="copy the file again: it may be cut off; or correct the number if you chose "
                "words yourself",
            )
        if not words:
            raise empty_file(self._path, "a word and its numbers in each line")

    def _read_lines(self) -> Iterator[tuple[int, bytes]]:
        hashed, size, number = hashlib.sha256(), 0, 0
        with translated(self._path, _FORMATS), open_regular(self._path) as file:
            while line := file.readline(LONGEST_LINE):
                hashed.update(line)
                size, number = size + len(line), number + 1
                self._check(number, line)
                yield number, line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
        self.digest = {"sha256": hashed.hexdigest(), "bytes": size}

    def _check(self, number: int, line: bytes) -> None:
        row = max(number - bool(self.count), 1)
        if b"\0" in line or (number == 1 and line.startswith(tuple(mark for mark, _ in MARKS))):
            raise self.encoding_error(row)
        if len(line) == LONGEST_LINE:
            raise self.line_error(row, line, f"at most {LONGEST_LINE:,} bytes in a line")
        if not line.endswith(b"\n"):
            raise DataError(
                f"the last line has no end: {show(line.decode(errors='replace'))}",
                file=str(self._path),
                row=row,
                expected="a line break after every line: the last number may be cut off",
                fix="copy the file again; add a line break if it is whole",
            )

    def line_error(self, row: int | None, line: bytes, expected: str) -> DataError:
        """Return the error of a line."""
        return DataError(
            f"the line is {show(line[:60].decode(errors='replace'))}",
            file=str(self._path),
            row=row,
            expected=expected,
            fix="write the vectors again, or name another file",
        )

    def encoding_error(self, row: int) -> DataError:
        """Return the error of a line that is binary or in another encoding."""
        return DataError(
            "the line holds bytes that aren't text in UTF-8",
            file=str(self._path),
            row=row,
            expected="vectors as text in UTF-8",
            fix="save text as UTF-8; convert word2vec's binary with gensim: KeyedVectors."
            "load_word2vec_format(path, binary=True).save_word2vec_format('words.txt')",
        )


def _read(lines: _Lines, vocabulary: Set[str]) -> dict[str, Floats32]:
    """Return the vectors of the wanted words that a file holds."""
    vectors: dict[str, Floats32] = {}
    rows: dict[str, int] = {}
    malformed: dict[str, tuple[int, bytes]] = {}
    begin, width = _encode_prefixes(vocabulary), 0
    for row, line in lines:
        width = width or lines.width or _count_numbers(lines, row, line)
        if line.split(None, 1)[0] not in begin:  # most lines are of other words
            continue
        head, *numbers = line.rsplit(None, width)
        word = _decode_word(lines, row, head, vocabulary)
        if len(numbers) < width or word not in vocabulary:
            malformed.setdefault(_join_words(line), (row, line))
            continue
        vector = _parse_vector(numbers)
        if vector is None:
            raise lines.line_error(row, line, f"a word and {width} finite numbers")
        if word in vectors and not np.array_equal(vectors[word], vector):
            raise lines.line_error(
                row, line, f"one vector of {show(word)}, which row {rows[word]} has"
            )
        vectors[word], rows[word] = vector, row
    for word, (row, line) in malformed.items():
        if word in vocabulary and word not in vectors:
            raise lines.line_error(row, line, f"a word and {width} finite numbers")
    return vectors


def _encode_prefixes(vocabulary: Set[str]) -> set[bytes]:
    """Return the first bytes of the words' lines, in UTF-8 and cp1252."""
    encoded = [
        word.encode(*codec) for word in vocabulary for codec in (("utf-8",), ("cp1252", "ignore"))
    ]
    return {part for word in encoded for part in word.split(None, 1)[:1]}


def _count_numbers(lines: _Lines, row: int, line: bytes) -> int:
    """Return how many numbers the first line has after its word."""
    try:
        line.decode()
    except UnicodeDecodeError:
        raise lines.encoding_error(row) from None
    tokens = line.split()
    width = min(len(tokens) - 1, len(tokens) - len(_strip_numbers(tokens)))
    if width == 0:
        raise lines.line_error(row, line, "a word and its numbers")
    return width


def _join_words(line: bytes) -> str:
    return b" ".join(_strip_numbers(line.split())).decode(errors="replace")


def _strip_numbers(tokens: list[bytes]) -> list[bytes]:
    """Return the tokens before the numbers at the end."""
    end = len(tokens)
    while end and _is_number(tokens[end - 1]):
        end -= 1
    return tokens[:end]


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _decode_word(lines: _Lines, row: int, word: bytes, vocabulary: Set[str]) -> str:
    """Return a word; raise if it is a needed word in another encoding."""
    word = word.strip()
    try:
        return word.decode()
    except UnicodeDecodeError:
        if word.decode("cp1252", "replace") in vocabulary:
            raise lines.encoding_error(row) from None
        return word.decode(errors="replace")


def _parse_vector(numbers: list[bytes]) -> Floats32 | None:
    """Return the vector that the texts spell, or None if a number isn't finite."""
    if not _NUMBERS.fullmatch(b" ".join(numbers)):
        return None
    with np.errstate(over="ignore"):
        vector = np.array(numbers, dtype=np.float32)
    return vector if np.isfinite(vector).all() else None
