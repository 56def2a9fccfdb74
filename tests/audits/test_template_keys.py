"""Each commented key of a template is a key of the schema, with a value that the key takes."""

import copy
import re
from functools import cache
from itertools import takewhile

import pytest
from pydantic import ValidationError

from equipoise.audits.config import schema
from equipoise.cli.commands.new import template
from equipoise.config.files import parse_yaml
from equipoise.discovery import KINDS

ITEM = "-"
LINE = re.compile(r"( *)(# ?)?( *)(- )?((?:[\w-]+|[^:#]+(?=: [\[{])):(?: .*)?|\{.*)?")


def parsed(text):
    return parse_yaml(text.encode(), "template")[0]


def lines(text):
    """Yield each line of a template as its indentation, text, and whether it is a comment."""
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match is not None and (match[4] or match[5]):
            indent = len(match[1]) + len(match[3])
            yield indent, f"{match[4] or ''}{match[5] or ''}", match[2] is not None


def deeper(rows, indent):
    """Return the texts of the rows up to the next that isn't indented more, as a block."""
    block = takewhile(lambda row: row[0] > indent, rows)
    return [" " * (depth - indent) + text for depth, text, _ in block]


def commented(text):
    """Yield the path and the text of each commented key; an item of a list is one value."""
    rows, stack = [*lines(text)], []
    for place, (indent, content, is_comment) in enumerate(rows):
        stack = [(depth, name) for depth, name in stack if depth < indent]
        path = tuple(name for _, name in stack)
        if ITEM in path:
            continue
        if content.startswith("- "):
            stack.append((indent, ITEM))
            if is_comment:
                yield path, "\n".join([content, *deeper(rows[place + 1 :], indent)])
            continue
        name, _, value = content.partition(":")
        stack.append((indent, name.strip('"')))
        if is_comment and value.partition(" #")[0].strip():
            yield (*path, name), value


def with_value(values, path, value):
    """Return a copy of a configuration with a value at a path."""
    changed = copy.deepcopy(values)
    section = changed
    for name in path[:-1]:
        if not isinstance(section.get(name), dict):
            section[name] = {}
        section = section[name]
    section[path[-1]] = value
    return changed


@cache
def starter(kind):
    return parsed(template(kind))


CASES = [
    pytest.param(kind, path, text, id=f"{kind}: {'.'.join(path)}")
    for kind in KINDS
    for path, text in commented(template(kind))
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_has_commented_keys(kind):
    assert kind in {case.values[0] for case in CASES}


@pytest.mark.parametrize(("kind", "path", "text"), CASES)
def test_a_commented_key_of_a_template_is_valid_once_it_is_on(kind, path, text, tmp_path):
    value = parsed(text)
    values = with_value(starter(kind), path, value)
    try:
        schema(kind).model_validate(values, context={"audit": kind, "base": tmp_path})
    except ValidationError as error:
        for problem in error.errors():
            location = problem["loc"]
            # A key may exclude another, or need one: that is an error of the section around it.
            assert problem["type"] in ("missing", "value_error"), problem
            assert problem["type"] == "missing" or location == path[: len(location)], problem
            assert location != path or isinstance(value, dict | list), problem
