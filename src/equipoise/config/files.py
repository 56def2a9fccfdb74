"""YAML as a config needs it, with the lines of its keys."""

import re
from collections.abc import Hashable, Iterable, Sequence
from difflib import get_close_matches
from reprlib import Repr
from typing import Any, ClassVar

import yaml
from pydantic import BaseModel
from yaml.constructor import BaseConstructor, ConstructorError

from equipoise.core import ConfigError
from equipoise.core.types import Json
from equipoise.data.problems import is_whole

MAX_BYTES = 4_000_000
_PLAIN = "tag:yaml.org,2002:"

# YAML 1.1, which PyYAML reads, takes `on`, `yes` and `no` for booleans, 010 for eight, 1:30 for
# ninety and 2024-01-01 for a date. Class names look like these, and a gate rule has a key `on`.
_FLOAT = r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_SCALARS = {
    "bool": r"true|True|TRUE|false|False|FALSE",
    "null": r"~|null|Null|NULL|",
    "int": r"0|-?[1-9][0-9]*",
    "float": rf"{_FLOAT}|-?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}
_SHORT_WORD = 4


class _Loader(yaml.SafeLoader):
    """A safe loader that knows text, numbers, true, false, null, lists and mappings only."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML declares it so
    yaml_constructors: ClassVar[dict[Any, Any]] = {
        tag: yaml.SafeLoader.yaml_constructors[tag]
        for tag in (None, *(f"{_PLAIN}{name}" for name in (*_SCALARS, "seq", "map")))
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping; the same key twice is an error, and merge keys are plain keys."""
        mapping = BaseConstructor.construct_mapping(self, node, deep)
        if len(mapping) < len(node.value):
            keys = [key.value for key, _ in node.value]
            at = next((place for place, key in enumerate(keys) if key in keys[:place]), 0)
            problem = f"the key {keys[at][:60]!r} appears twice"
            raise ConstructorError(None, None, problem, node.value[at][0].start_mark)
        return mapping


def _text(loader: _Loader, node: Any) -> str:
    text = str(loader.construct_scalar(node))
    if not is_whole(text):
        problem = f"{ascii(text)[:60]} has a surrogate, which isn't a character"
        raise ConstructorError(None, None, problem, node.start_mark)
    return text


for _tag, _pattern in _SCALARS.items():
    _Loader.add_implicit_resolver(_PLAIN + _tag, re.compile(f"^(?:{_pattern})$"), None)
_Loader.add_constructor(f"{_PLAIN}str", _text)


def parse_yaml(content: bytes, source: str) -> tuple[Any, yaml.Node | None]:
    """Read one YAML document.

    Parameters
    ----------
    content : bytes
        UTF-8, with or without a byte order mark.
    source : str
        Name of the file, for errors.

    Returns
    -------
    value : object
        Mappings, lists, text, integers, floats, booleans and None.
    node : yaml.Node or None
        The same with its places in the file, see `line_of`; None for an empty document.

    Raises
    ------
    ConfigError
        When it is too large, not UTF-8, not YAML, or repeats a key.
    """
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{source}: {len(content)} bytes; expected at most {MAX_BYTES}")
    try:
        loader = _Loader(content.decode("utf-8-sig"))
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{source}, line {line}: byte {error.start + 1} of the file is not UTF-8. To do: save "
            "the file as UTF-8",
            file=source, line=line,
        ) from None  # fmt: skip
    except yaml.MarkedYAMLError as error:
        raise _yaml_problem(error, source, content) from None
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply; expected at most a few levels") from None
    except (yaml.YAMLError, ValueError, LookupError) as error:
        raise ConfigError(f"{source}: not YAML: {str(error).splitlines()[0]}") from None


_FIXES = (
    ("\\t", "indent with spaces, not with tabs"),
    (
        "mapping values are not allowed",
        "start a line for each key, indent the keys of a section alike, and put a value with a "
        "colon in quotes",
    ),
    ("expected ':'", "write 'key: value', with a space after the colon"),
    ("<block end>", "indent the keys of a section by the same number of spaces"),
    ("']'", "close the list with ]"),
    ("'}'", "close the mapping with }"),
    ("quoted scalar", "close the quotes"),
    ("end of stream", "close the quotes"),
    ("appears twice", "remove one of them"),
    ("could not determine a constructor", "remove the tag, which starts with !"),
    ("undefined alias", "put the value in quotes, if it starts with *"),
    ("cannot start any token", "put the value in quotes"),
)
"""Parts of messages about YAML, and what to do."""
_SNIPPET = 70


def _yaml_problem(error: yaml.MarkedYAMLError, source: str, content: bytes) -> ConfigError:
    """Return the error with the line of the problem, and a caret under its column."""
    mark, problem = error.problem_mark, str(error.problem)
    if "quoted scalar" in str(error.context):  # the place where the quote opens
        mark = error.context_mark
    fix = next((fix for part, fix in _FIXES if part in problem), "correct the line")
    if mark is None:
        return ConfigError(f"{source}: {problem}. To do: {fix}", file=source)
    lines = content.decode("utf-8-sig").splitlines()
    text = lines[mark.line].replace("\t", " ") if mark.line < len(lines) else ""
    start = max(0, mark.column - _SNIPPET // 2) if len(text) > _SNIPPET else 0
    snippet = text[start : start + _SNIPPET].rstrip()
    caret = " " * (mark.column - start) + "^"
    return ConfigError(
        f"{source}, line {mark.line + 1}: {problem}\n  {snippet}\n  {caret}\nTo do: {fix}",
        file=source, line=mark.line + 1,
    )  # fmt: skip


def line_of(node: yaml.Node | None, path: Sequence[str | int]) -> int | None:
    """Return the line, from 1, of the deepest part of `path` that the document has."""
    line = None
    for step in path:
        children: dict[str, tuple[Any, Any]] = {}
        if isinstance(node, yaml.MappingNode):
            children = {str(key.value): (key, value) for key, value in node.value}
        elif isinstance(node, yaml.SequenceNode):
            children = {str(place): (value, value) for place, value in enumerate(node.value)}
        if str(step) not in children:
            break
        key, node = children[str(step)]
        line = key.start_mark.line + 1
    return line


def nearest(unknown_word: object, allowed: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the most similar allowed word, or "".

    A short word is like a longer one by chance, so that it has to be nearly as long.
    """
    match = get_close_matches(str(unknown_word)[:100], [*allowed], n=1, cutoff=0.5)
    unlike = (
        match and len(match[0]) < _SHORT_WORD and abs(len(match[0]) - len(str(unknown_word))) > 1
    )
    return f"; did you mean {match[0]!r}?" if match and not unlike else ""


class _Yaml(Repr):
    """Write values briefly, and as a config has them."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxdict, self.maxlist = 2, 3, 4
        self.maxstring = self.maxother = 60

    def repr_NoneType(self, value: None, level: int) -> str:  # noqa: ARG002, N802 - of Repr
        return "nothing"

    def repr_bool(self, value: bool, level: int) -> str:  # noqa: ARG002 - of Repr
        return str(value).lower()

    def repr_float(self, value: float, level: int) -> str:  # noqa: ARG002 - of Repr
        return repr(value).replace("nan", ".nan").replace("inf", ".inf")

    def repr_tuple(self, value: tuple[Json, ...], level: int) -> str:
        return self.repr_list([*value], level)


as_yaml = _Yaml().repr
"""Return a value of a config as text that is short enough for an error."""


def keys(model: type[BaseModel]) -> list[str]:
    """Return the keys of a schema, the shared keys last."""
    return sorted(model.model_fields, key=lambda name: name not in model.__annotations__)
