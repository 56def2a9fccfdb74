"""YAML of labels and classes: every scalar is text, nothing is executed."""

from __future__ import annotations

from typing import Any

from equipoise.core import DataError
from equipoise.data.problems import show


def parse_mapping_yaml(text: str, file: str) -> Any:
    """Return labels and classes; `yes`, `010` and `null` are the texts they look like.

    Raises
    ------
    DataError
        When the text is no YAML, has a key twice, or uses anchors.
    """
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise yaml.YAMLError("it has an alias, such as *name")
        _check_keys(node, file)
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - makes texts, lists and dicts
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise DataError(
            f"this is not YAML of labels ({getattr(error, 'problem', None) or error})",
            file=f"{file}{place}",
            expected="labels such as 'phones: [cellphone, telephone]'",
            fix="correct the file",
        ) from None


def _check_keys(node: Any, file: str) -> None:
    if not hasattr(node, "value") or not isinstance(node.value, list):
        return
    keys = [one[0].value for one in node.value if isinstance(one, tuple)]
    twice = next((key for key in keys if isinstance(key, str) and keys.count(key) > 1), None)
    if twice is not None:
        raise DataError(
            f"the label {show(twice)} is there twice",
            file=file,
            expected="every label once",
            fix="give it one list of classes",
        )
