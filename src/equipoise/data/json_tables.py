"""Rows of JSON: lists and mappings of objects, columns, and the paths of nested cells."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from equipoise.core import DataError, Facts, Fields, Strings
from equipoise.data.files import RepeatedKeyError, parse_json
from equipoise.data.problems import listed, show

RECORD_KEY = "record key"
"""Column of the keys, where JSON maps the key of each row to its object."""

Path: TypeAlias = tuple[str | int, ...]

# Longer lists are vectors, and deeper objects no tables.
_MOST_ENTRIES, _MOST_LEVELS = 4, 6


def json_lines(text: str, name: str) -> list[Fields]:
    """Return the objects of JSON lines.

    Raises
    ------
    DataError
        When a line is no object, or has a key twice.
    """
    records: list[Fields] = []
    for line in filter(str.strip, text.split("\n")):
        row = len(records) + 1
        try:
            record = parse_json(line)
        except RepeatedKeyError as error:
            raise error.located(name, row) from None
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise DataError(
                f"the line is no JSON object: {show(line)}",
                file=name,
                row=row,
                expected='one object a line, such as {"id": "1", "prediction": "cat"}',
                fix="correct the line",
            )
        records.append(record)
    return records


def json_records(
    text: str, name: str, records: str | None = None, header: Strings = ()
) -> list[Fields]:
    """Return the rows of a JSON text.

    Rows are a list of objects, for example COCO results; a mapping of a key to each object; columns
    by name; or the only list of objects in a mapping.

    Parameters
    ----------
    text, name : str
        The text, and its file for errors.
    records : str, optional
        Path of the rows in the text, such as "data.items".
    header : tuple of str
        Names of the cells, of a list of lists.

    Raises
    ------
    DataError
        When it is no JSON, has a key twice, or holds no rows.
    """
    try:
        value = parse_json(text)
    except RepeatedKeyError as error:
        raise error.located(name, None) from None
    except ValueError:
        value = None
    if records is not None:
        value = _at_path(value, records, name)
    if header and isinstance(value, list):
        return _with_header(value, header, name)
    rows = _rows(value)
    if rows is None:
        places = " or ".join(f"`records: {path}`" for path in _list_paths(value))
        raise DataError(
            "the file isn't a list of JSON objects",
            file=name,
            expected='a list such as [{"image_id": 1, "caption": "a dog"}], or a mapping of a key '
            "to each object",
            fix=f"name the rows in the config: {places}; or the format of a data set, `format:`"
            if places
            else "write one object for each row, or name the format of a data set under `format:`",
        )
    return rows


def _rows(value: Any) -> list[Fields] | None:
    """Return rows in any of their forms; None of anything else."""
    if isinstance(value, list):
        return value if all(isinstance(row, dict) for row in value) else None
    if not isinstance(value, dict) or not value:
        return None
    cells = [*value.values()]
    if all(isinstance(cell, dict) for cell in cells):
        places = [*map(str, range(len(cells[0])))]
        if places and all([*cell] == places for cell in cells):
            return [{key: cell[place] for key, cell in value.items()} for place in places]
        return [{RECORD_KEY: key, **row} for key, row in value.items()]
    columns = all(isinstance(cell, list) and len(cell) == len(cells[0]) for cell in cells)
    if columns and not any(isinstance(cell, dict) for cell in chain.from_iterable(cells)):
        return [dict(zip(value, row, strict=True)) for row in zip(*cells, strict=True)]
    names = _lists(value)
    return value[names[0]] if len(names) == 1 else None


def _lists(value: Fields) -> list[str]:
    """Return the keys of lists of objects."""
    return [
        key
        for key, cell in value.items()
        if isinstance(cell, list) and cell and all(isinstance(row, dict) for row in cell)
    ]


def _list_paths(value: Any, path: Strings = ()) -> Iterator[str]:
    """Yield the dotted paths of lists of objects in a mapping and the ones inside it."""
    if not isinstance(value, dict) or len(path) == _MOST_LEVELS:
        return
    yield from (".".join((*path, key)) for key in _lists(value))
    for key, cell in value.items():
        yield from _list_paths(cell, (*path, key))


def _at_path(value: Any, records: str, name: str) -> Any:
    """Return the value at a path of a text."""
    for key in records.split("."):
        if not isinstance(value, dict) or key not in value:
            raise DataError(
                f"there is no {key!r} at {records!r}",
                file=name,
                expected=f"one of {listed([*value])}" if isinstance(value, dict) else "an object",
                fix="correct `records:`",
            )
        value = value[key]
    return value


def _with_header(rows: Sequence[Any], header: Strings, name: str) -> list[Fields]:
    """Return lists of cells as objects."""
    for place, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(header):
            raise DataError(
                f"the row is {show(row)}",
                file=name,
                row=place + 1,
                expected=f"a list of {len(header)} cells, as `header:` names",
                fix="correct `header:`, or leave it out if rows are objects",
            )
    return [dict(zip(header, row, strict=True)) for row in rows]


def cell_paths(records: Iterable[Facts]) -> dict[str, Path]:
    """Return the path of every column: keys, and dotted paths into objects and short lists.

    Examples
    --------
    >>> cell_paths([{"doc": {"gender": "female"}, "answers": ["A"]}])
    {'doc': ('doc',), 'answers': ('answers',), 'doc.gender': ('doc', 'gender'), 'answers.0': ('answers', 0)}
    """  # noqa: E501 - printed in one line
    outer: dict[str, Path] = {}
    inner: dict[str, Path] = {}
    for record in records:
        for key, value in record.items():
            outer[key] = (key,)
            if isinstance(value, dict | list):
                inner |= {".".join(map(str, path)): path for path in _leaves((key,), value)}
    # A key that has a dot itself is no path.
    return {**outer, **{name: path for name, path in inner.items() if name not in outer}}


def _leaves(path: Path, value: Any) -> Iterator[Path]:
    """Yield the paths of plain cells below a value."""
    entries: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list) and len(value) <= _MOST_ENTRIES:
        entries = enumerate(value)
    elif not isinstance(value, list) and len(path) > 1:
        yield path
    if len(path) < _MOST_LEVELS:
        for key, entry in entries:
            yield from _leaves((*path, key), entry)


def cells_at(records: Sequence[Facts], path: Path, name: str) -> list[Any]:
    """Return the cell of each record at a path; a missing key is a missing cell.

    Raises
    ------
    DataError
        When a record has a plain value where the path goes on.
    """
    return [_cell(record, path, name, row) for row, record in enumerate(records, 1)]


def _cell(record: Facts, path: Path, name: str, row: int) -> Any:
    value: Any = record
    for step, key in enumerate(path):
        if isinstance(key, str) and isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(key, int) and isinstance(value, list):
            value = value[key] if key < len(value) else None
        elif value is None:
            return None
        else:
            raise DataError(
                f"{'.'.join(map(str, path[:step]))!r} is {show(value)} here",
                file=name,
                column=".".join(map(str, path)),
                row=row,
                expected="an object, or a list" if isinstance(key, str) else "a list",
                fix="write every row alike, or name another column",
            )
    return value
