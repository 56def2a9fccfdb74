"""Prompts from a template and lists of values."""

from pathlib import Path

import pytest

from equipoise.core.errors import InputError
from equipoise.counterfactuals import generate_prompts, prompt_table
from equipoise.counterfactuals.templates import CLASS_AND_BACKGROUND, GENDER_AND_OCCUPATION
from generator_models import Swatches


def test_classes_and_backgrounds(tmp_path: Path) -> None:
    table = prompt_table(
        CLASS_AND_BACKGROUND, {"class": ["dog", "owl"], "background": ["on grass", ""]}
    )
    assert table.column_names == ["prompt_id", "prompt", "class", "background"]
    assert table["prompt"].to_pylist() == [
        "A photo of a dog on grass",
        "A photo of a dog",
        "A photo of an owl on grass",
        "A photo of an owl",
    ]
    assert table["prompt_id"].to_pylist() == [
        "dog/on-grass",
        "dog/none",
        "owl/on-grass",
        "owl/none",
    ]
    found = generate_prompts(table, Swatches(), tmp_path)
    assert found.table["background"].to_pylist() == ["on grass", "", "on grass", ""]


def test_articles_follow_the_first_word_that_is_said() -> None:
    values = {"gender": ["", "female"], "occupation": ["engineer", "umpire"]}
    assert prompt_table(GENDER_AND_OCCUPATION, values)["prompt"].to_pylist() == [
        "An engineer",
        "An umpire",
        "A female engineer",
        "A female umpire",
    ]


@pytest.mark.parametrize(
    ("template", "values", "message"),
    [
        ("A {class}", {"class": []}, r"class is \[\]; expected a list of different texts"),
        ("A {class}", {"class": "dog"}, "class is 'dog'; expected a list of different texts"),
        ("A {class}", {"class": ["dog", "Dog"]}, "class has 'Dog' twice"),
        ("A {class}", {"class": ["", "-"]}, "class has '-' twice"),
        ("A {prompt}", {"prompt": ["dog"]}, "a list of values is named 'prompt', as a column"),
        ("A dog", {"class": ["dog"]}, "'A dog' has nothing in braces; expected class, each once"),
        ("A dog", {}, "'A dog' has nothing in braces; expected names of values, each once"),
        ("{a} {a}", {"a": ["x"]}, "'{a} {a}' has a, a in braces; expected a, each once"),
        ("A {b}", {"a": ["x"]}, "'A {b}' has b in braces; expected a, each once"),
        ("A {", {"a": ["x"]}, "the template 'A {' cannot be read: "),
    ],
)
def test_templates_that_cannot_be_filled(
    template: str, values: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        prompt_table(template, values)
