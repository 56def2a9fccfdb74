"""YAML as a configuration needs it: YAML 1.2 scalars, no duplicate keys, nothing executed."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, NoReturn

import yaml

from equipoise.core.errors import ConfigError

MAX_BYTES = 4_000_000
_PLAIN = "tag:yaml.org,2002:"

# YAML 1.1, which PyYAML reads, takes `on`, `yes` and `no` for booleans, 010 for eight, 1:30 for
# ninety and 2024-01-01 for a date. Class names look like these, and a gate rule has a key `on`.
_FLOAT = r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_SCALARS: tuple[tuple[str, str, str], ...] = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("int", r"0|-?[1-9][0-9]*", "-0123456789"),
    ("float", rf"{_FLOAT}|-?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-.0123456789"),
)
_TRUTH = {"true": True, "false": False}


class _Loader(yaml.SafeLoader):
    """A safe loader that knows text, numbers, true, false, null, lists and mappings only."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML declares it so
    yaml_constructors: ClassVar[dict[Any, Any]] = {}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Leave merge keys alone: YAML 1.2 has none, and nested ones grow without bound."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping; the same key twice is an error."""
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(
                None, None, "expected a mapping", node.start_mark
            )
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                problem = "a list or mapping cannot be a key"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            if key in mapping:
                problem = f"the key {_short(key)} appears twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping


def _scalar(convert: Callable[[str], Any], kind: str) -> Callable[[_Loader, yaml.Node], Any]:
    def construct(loader: _Loader, node: yaml.Node) -> Any:
        text = loader.construct_scalar(node)  # type: ignore[arg-type]  # refuses other nodes itself
        try:
            return convert(str(text))
        except (ValueError, KeyError):
            problem = f"{_short(text)} is no {kind}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    return construct


def _text(loader: _Loader, node: yaml.Node) -> str:
    text = str(loader.construct_scalar(node))  # type: ignore[arg-type]  # refuses other nodes itself
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = f"{ascii(text)[:60]} has a surrogate, which is no character; expected valid text"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None
    return text


def _unknown_tag(_: _Loader, node: yaml.Node) -> NoReturn:
    problem = f"the tag {_short(node.tag)} is not allowed; expected plain YAML"
    raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _number(text: str) -> float:
    return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))


for _tag, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(_PLAIN + _tag, re.compile(f"^(?:{_pattern})$"), [*_first, ""])
_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "bool": _scalar(lambda text: _TRUTH[text.lower()], "boolean"),
    "null": _scalar(lambda _: None, "null"),
    "int": _scalar(int, "integer"),
    "float": _scalar(_number, "number"),
    "str": _text,
    "seq": _Loader.construct_yaml_seq,
    "map": _Loader.construct_yaml_map,
}
for _tag, _build in _CONSTRUCTORS.items():
    _Loader.add_constructor(_PLAIN + _tag, _build)
_Loader.add_constructor(None, _unknown_tag)


def _short(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else text[:60] + "…")


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
        raise ConfigError(
            f"{source}: {len(content)} bytes; expected a configuration of at most {MAX_BYTES}"
        )
    try:
        loader = _Loader(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{source}: byte {error.start + 1} is not UTF-8. To do: save the file as UTF-8"
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not YAML: {_problem(error)}") from None
    try:
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except yaml.YAMLError as error:
        raise ConfigError(f"{_place(source, error)}: {_problem(error)}") from None
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply; expected at most a few levels") from None
    finally:
        loader.dispose()


def _place(source: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return source if mark is None else f"{source}, line {mark.line + 1}"


def _problem(error: yaml.YAMLError) -> str:
    return (
        getattr(error, "problem", None) or str(getattr(error, "reason", "") or error).split("\n")[0]
    )


def line_of(node: yaml.Node | None, path: Sequence[str | int]) -> int | None:
    """Return the line, from 1, of the deepest part of `path` that the document has."""
    line = None
    for step in path:
        child = _child(node, step)
        if child is None:
            break
        place, node = child
        line = place.start_mark.line + 1
    return line


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None
