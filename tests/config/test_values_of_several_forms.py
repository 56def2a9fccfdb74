"""Keys that take values of several forms: a wrong value is one problem, and no traceback."""

from importlib import import_module
from pkgutil import walk_packages

import pytest
from pydantic import ValidationError, create_model

import equipoise
from audits.configs import refusal, with_model
from equipoise.config.fields import Section
from equipoise.config.problems import explain
from equipoise.core import EquipoiseError

WRONG = ("no such word", -1e9, True, {"no such key": 1}, [[]], ["a", 1.5], {"a": {"b": [2.5]}})


def sections(base=Section):
    for section in base.__subclasses__():
        yield section
        yield from sections(section)


def keys_of_all_sections():
    for module in walk_packages(equipoise.__path__, "equipoise."):
        if module.name.endswith(("config", "cli.augmentation", "cli.training", "studies.study")):
            import_module(module.name)
    for section in sorted({*sections()}, key=lambda s: (s.__module__, s.__qualname__)):
        if section.__module__.startswith("equipoise."):
            for name, field in section.model_fields.items():
                yield section, name, field


def problems(annotation, value):
    """Return the places of the problems with the value of a key."""
    only = create_model("Only", __base__=Section, key=(annotation, ...))
    try:
        only.model_validate({"key": value}, context={})
    except ValidationError as error:
        lines = str(explain(error, {"key": value}, "c")).splitlines()
        texts = [line.strip() for line in lines[1:]] or [lines[0].removeprefix("c: ")]
        return [text.partition(":")[0] for text in texts]
    except EquipoiseError:
        return ["key"]
    return []


def test_a_wrong_value_is_one_problem_for_each_key():
    checked, wrong = 0, []
    for section, name, field in keys_of_all_sections():
        for value in WRONG:
            places = problems(field.rebuild_annotation(), value)
            checked += len(places)
            repeated = len({*places}) < len(places)
            if repeated or (len(places) > 1 and not isinstance(value, list | dict)):
                wrong.append((section.__qualname__, name, value, places))
    assert checked > 1000
    assert wrong == []


@pytest.mark.parametrize(
    ("threshold", "key", "forms"),
    [
        ("high", "threshold", ["a number", "'prevalence'", "a mapping of false_positive_rate"]),
        ([0.5], "threshold", ["a number", "'prevalence'", "a mapping of false_positive_rate"]),
        ({"false_rate": 0.1}, "threshold.false_rate", ["false_positive_rate"]),
        ({"false_positive_rate": 2}, "threshold.false_positive_rate", ["less than"]),
    ],
)
def test_a_wrong_threshold_is_one_problem_with_the_forms_it_can_have(threshold, key, forms):
    text = refusal(with_model(prediction=None, score="s", threshold=threshold))
    assert text.startswith(f"c: models.m.{key}: ")
    assert all(form in text for form in forms)
