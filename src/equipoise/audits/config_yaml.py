"""YAML as a configuration needs it, and what is wrong with a configuration in its own words."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from difflib import get_close_matches
from reprlib import Repr
from typing import Annotated, Any, ClassVar, NoReturn, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

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
        raise ConfigError(f"{source}: not YAML: {_yaml_problem(error)}") from None
    try:
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except yaml.YAMLError as error:
        raise ConfigError(f"{_place(source, error)}: {_yaml_problem(error)}") from None
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply; expected at most a few levels") from None
    finally:
        loader.dispose()


def _place(source: str, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return source if mark is None else f"{source}, line {mark.line + 1}"


def _yaml_problem(error: yaml.YAMLError) -> str:
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


_MAX_PROBLEMS = 20
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxdict, _SHORT.maxlist, _SHORT.maxtuple = 2, 3, 4, 4
_SHORT.maxstring = _SHORT.maxother = 60
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "mapping_type": "a mapping",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_too_short": "a text that is not empty",
    "string_type": "text (in quotes where it looks like a number, true, false or null)",
    "tuple_type": "a list",
}
"""What each kind of pydantic error asks for, in the words of a configuration."""


def nearest(given: object, allowed: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the allowed word most like what was given, or ""."""
    match = get_close_matches(str(given)[:100], [*allowed], n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""


def explain(error: ValidationError, model: type[BaseModel], source: str, node: Any) -> str:
    """Say every problem of a configuration in one message.

    Parameters
    ----------
    error : ValidationError
    model : type of BaseModel
        The schema it was checked against.
    source : str
        Name of the file.
    node : yaml.Node or None
        The document, for line numbers.
    """
    problems = [_problem(details, model, node) for details in _causes(error)]
    problems.sort(key=lambda problem: problem[0] or 0)
    if len(problems) == 1:
        line, text = problems[0]
        return f"{source}{f', line {line}' if line else ''}: {text}"
    shown = [
        f"  {f'line {line}: ' if line else ''}{text}" for line, text in problems[:_MAX_PROBLEMS]
    ]
    if len(problems) > _MAX_PROBLEMS:
        shown.append(f"  and {len(problems) - _MAX_PROBLEMS} more")
    return "\n".join([f"{source}: {len(problems)} problems", *shown])


def _causes(error: ValidationError) -> list[ErrorDetails]:
    """Leave out lists that are too short only because an entry is wrong."""
    found = error.errors(include_url=False)
    return [
        one
        for one in found
        if one["type"] != "too_short"
        or not any(other["loc"][: len(one["loc"])] == one["loc"] != other["loc"] for other in found)
    ]


def _problem(details: ErrorDetails, model: type[BaseModel], node: Any) -> tuple[int | None, str]:
    found = [step for step in details["loc"] if step != "[key]"]
    if details["type"] == "invalid_key":
        found[-1] = str(found[-1])
    allowed = allowed_keys(model, found[:-1])
    path = _without_tags(model, found)
    if details["type"].startswith("union_tag"):
        path.append(details["ctx"]["discriminator"].strip("'"))
    inner = _keys_within(model, found) if details["type"] == "tuple_type" else []
    text = _sentence(details, allowed, path, inner)
    key = dotted(path)
    return line_of(node, path), f"{key}: {text}" if key else text


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as `models.clip.map` or `gate[0].metric`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{_bare(step)}" if text else _bare(step)
    return text


def _bare(step: str) -> str:
    return step if len(step) <= 60 else step[:60] + "…"


def _sentence(
    details: ErrorDetails, allowed: list[str], path: list[str | int], inner: list[str]
) -> str:
    kind, given = details["type"], details["input"]
    if kind in ("extra_forbidden", "invalid_key"):
        if not allowed:
            return "unknown key. This takes no options"
        return f"unknown key. Allowed here: {', '.join(allowed)}{nearest(path[-1], allowed)}"
    if kind == "missing":
        return "required, and missing"
    if kind.startswith("union_tag"):
        return _untold(details)
    if kind == "value_error":
        return _own(details, given)
    expected = _EXPECTED.get(kind) or details["msg"].replace("Input should be", "").strip()
    if kind == "too_short":
        expected = _at_least(details["ctx"]["min_length"])
    if inner:
        expected += f" of mappings, each with keys of {', '.join(inner)}"
    near = nearest(given, _choices(details)) if kind == "literal_error" else ""
    return f"given {_SHORT.repr(given)}; expected {expected}{near}"


def _at_least(entries: int) -> str:
    return "at least one entry" if entries == 1 else f"at least {entries} entries"


def _untold(details: ErrorDetails) -> str:
    """Say what a section may be called that does not say, or that nothing is called."""
    context = details["ctx"]
    if "tag" not in context:
        return "required, and missing"
    allowed = [word.strip("'") for word in context["expected_tags"].split(", ")]
    tag = context["tag"]
    return f"given {tag!r}. Allowed: {', '.join(allowed)}{nearest(tag, allowed)}"


def _own(details: ErrorDetails, given: object) -> str:
    text = details["msg"].removeprefix("Value error, ")
    return f"given {_SHORT.repr(given)}; {text}" if text.startswith("expected") else text


def _choices(details: ErrorDetails) -> list[str]:
    expected = str(details.get("ctx", {}).get("expected", ""))
    return [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]


def allowed_keys(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Return the keys that a configuration may have at `path`, in the order of the schema."""
    kind = _plain(_kind_at(model, path))
    return keys(kind) if _is_model(kind) else []


def _kind_at(model: type[BaseModel], path: Sequence[str | int]) -> Any:
    kind: Any = model
    for step in path:
        tagged = _tagged(kind)
        kind = tagged[step] if step in tagged else _member(_plain(kind), step)
    return kind


def _keys_within(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    """Return the keys of the entries of a list; none where entries are of several kinds."""
    return [] if _tagged(_kind_at(model, [*path, 0])) else allowed_keys(model, [*path, 0])


def _without_tags(model: type[BaseModel], path: Sequence[str | int]) -> list[str | int]:
    """Leave out the steps that only say which of several sections something is read as."""
    kind: Any = model
    kept: list[str | int] = []
    for step in path:
        tagged = _tagged(kind)
        if step in tagged:
            kind = tagged[step]
        else:
            kept.append(step)
            kind = _member(_plain(kind), step)
    return kept


def _tagged(kind: Any) -> dict[str | int, Any]:
    """Return sections that are told apart by the value of a key, by that value."""
    if get_origin(kind) is not Annotated:
        return {}
    union, *about = get_args(kind)
    key = next((one.discriminator for one in about if getattr(one, "discriminator", None)), None)
    if not isinstance(key, str):
        return {}
    members = get_args(union)
    return {tag: m for m in members for tag in get_args(m.model_fields[key].annotation)}


def keys(model: type[BaseModel]) -> list[str]:
    """Return the keys of a schema: its own, then those it shares with others."""
    return sorted(model.model_fields, key=lambda name: name not in model.__annotations__)


def _member(kind: Any, step: str | int) -> Any:
    if _is_model(kind):
        field = kind.model_fields.get(step)
        return None if field is None else field.annotation
    arguments = get_args(kind)
    if get_origin(kind) is tuple or not arguments:
        return arguments[0] if arguments else None
    return arguments[-1]


def _plain(kind: Any) -> Any:
    """Strip what stands around a type: annotations and the alternative None."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return _plain(next(part for part in get_args(kind) if part is not type(None)))
    return kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
