"""YAML as a config needs it, and errors of a config with their lines."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from reprlib import Repr
from typing import Any, ClassVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.constructor import BaseConstructor, ConstructorError

from equipoise.core import ConfigError
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
            problem = f"the key {_SHORT.repr(keys[at])} appears twice"
            raise ConstructorError(None, None, problem, node.value[at][0].start_mark)
        return mapping


def _text(loader: _Loader, node: Any) -> str:
    text = str(loader.construct_scalar(node))
    if not is_whole(text):
        problem = f"{ascii(text)[:60]} has a surrogate, which is no character"
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
        raise ConfigError(
            f"{source}: byte {error.start + 1} is not UTF-8. To do: save the file as UTF-8"
        ) from None
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{source}{where}: {error.problem}") from None
    except RecursionError:
        raise ConfigError(f"{source}: nested too deeply; expected at most a few levels") from None
    except (yaml.YAMLError, ValueError, LookupError) as error:
        raise ConfigError(f"{source}: not YAML: {str(error).splitlines()[0]}") from None


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


_MAX_PROBLEMS = 20
_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxdict, _SHORT.maxlist, _SHORT.maxtuple = 2, 3, 4, 4
_SHORT.maxstring = _SHORT.maxother = 60
_EXPECTED = {
    "bool_type": "true or false",
    "finite_number": "a finite number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_too_short": "a text that is not empty",
    "string_type": "text (in quotes where it looks like a number, true, false or null)",
    "tuple_type": "a list",
}
"""What each kind of pydantic error asks for, in the words of a configuration."""
# What pydantic writes around what it expects.
_PYDANTIC = re.compile(r"Input should be|\w+ should have (.*?) after validation.*")


def nearest(unknown_word: object, allowed: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the most similar allowed word, or ""."""
    match = get_close_matches(str(unknown_word)[:100], [*allowed], n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""


def explain(error: ValidationError, values: Any, source: str, node: Any) -> str:
    """Return every problem of a configuration in one message.

    Parameters
    ----------
    error : ValidationError
    values : mapping
        The configuration.
    source : str
        Name of the file.
    node : yaml.Node or None
        The document, for line numbers.
    """
    problems = []
    errors = error.errors(include_url=False)
    # A list is too short, too, because an entry is wrong.
    for details in [details for details in errors if details["type"] != "too_short"] or errors:
        path, text = _path(values, details), _sentence(details)
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        key = "".join(steps).removeprefix(".")
        problems.append((line_of(node, path), f"{key}: {text}" if key else text))
    problems.sort(key=lambda problem: problem[0] or 0)
    if len(problems) == 1:
        line, text = problems[0]
        return f"{source}{f', line {line}' if line else ''}: {text}"
    lines = [f"  {f'line {line}: ' if line else ''}{text}" for line, text in problems]
    if len(problems) > _MAX_PROBLEMS:
        lines[_MAX_PROBLEMS:] = [f"  and {len(problems) - _MAX_PROBLEMS} more"]
    return "\n".join([f"{source}: {len(problems)} problems", *lines])


def _path(values: Any, details: ErrorDetails) -> list[str | int]:
    """Return the keys to a problem, without the tags that pydantic adds for unions."""
    path: list[str | int] = []
    for step in details["loc"]:
        if isinstance(values, Mapping) and step not in values and step in _texts(values):
            continue
        tag = path and isinstance(step, str) and not isinstance(values, Mapping)
        if step != "[key]" and not tag:
            path.append(step)
            within = isinstance(values, Mapping) and step in values
            within |= (
                isinstance(values, list | tuple) and isinstance(step, int) and step < len(values)
            )
            values = values[step] if within else None
    context = details.get("ctx", {})
    if details["type"].startswith("union_tag"):
        path.append(context["discriminator"].strip("'"))
    return [*path, context["key"]] if details["type"] == "unknown_key" else path


def _texts(values: Mapping[Any, Any]) -> list[str]:
    return [value for value in values.values() if isinstance(value, str)]


def _sentence(details: ErrorDetails) -> str:
    kind, input_value, context = details["type"], details["input"], details.get("ctx", {})
    if kind in ("missing", "union_tag_not_found"):
        return "required, and missing"
    if kind == "unknown_key":
        return details["msg"]
    if kind == "value_error":
        text = details["msg"].removeprefix("Value error, ")
        return f"given {_SHORT.repr(input_value)}; {text}" if text.startswith("expected") else text
    expected = _EXPECTED.get(kind) or _PYDANTIC.sub(r"\1", details["msg"]).strip()
    if kind == "union_tag_invalid":
        input_value, expected = context["tag"], context["expected_tags"]
    words = re.findall("'([^']*)'", expected)
    return f"given {_SHORT.repr(input_value)}; expected {expected}{nearest(input_value, words)}"


def keys(model: type[BaseModel]) -> list[str]:
    """Return the keys of a schema, the shared keys last."""
    return sorted(model.model_fields, key=lambda name: name not in model.__annotations__)
