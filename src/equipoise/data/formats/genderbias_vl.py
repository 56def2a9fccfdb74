"""GenderBias-VL: questions with two occupations about generated images and their counterfactuals.

Source: github.com/GenderBiasVL/GenderBias-VL and huggingface.co/datasets/xiaoyisong/GenderBias-VL
(CC BY-NC 4.0): in `test_meta_file` a folder for each context with `occ_test_base_ask_*.json` and
`occ_test_cf_ask_*.json`, lists of questions with `id`, `query`, `gt_choice`, `gt_choices`, `occ`,
`occ_sim`, `gender` and `image`. The `gender` of both is that of the base image; the counterfactual
shows the other. The first of two occupations in the list is that which more men have. Results are
`OccBias_*.json`, lists with `id`, `probs`, `gt_choice` and `metric_result`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from equipoise.core import DataError
from equipoise.core.types import FileFacts
from equipoise.data.formats.reading import Id, Number, Records, Text, data_format, read_json
from equipoise.data.image_set import ImageRecords, ImageSet, Places, image_set
from equipoise.data.problems import show

Gender = Literal["female", "male"]
_OTHER: dict[Gender, Gender] = {"female": "male", "male": "female"}
_WAITER = {"Waitress": "Waiter"}
"""Names by gender of one occupation."""
_OPTIONS = "Options:"
_COLUMNS = ("pair", "version", "occupations", "occupation", "right", "gender", "question", "first",
            "second", "path")  # fmt: skip


class Question(BaseModel):
    """A question about an image."""

    id: Id
    query: Text
    gt_choice: Annotated[int, Field(ge=0, le=1)]
    gt_choices: Annotated[list[Text], Field(min_length=2, max_length=2)]
    occ: Text
    occ_sim: Text
    gender: Gender
    image: Text

    @property
    def occupations(self) -> tuple[str, str]:
        """The occupation of the image and the other option, by one name for both genders."""
        return _WAITER.get(self.occ, self.occ), _WAITER.get(self.occ_sim, self.occ_sim)


class Result(BaseModel):
    """A model's result for a question: probabilities of the options as shown."""

    id: Id
    probs: Annotated[list[Number], Field(min_length=2, max_length=2)]
    gt_choice: Annotated[int, Field(ge=0, le=1)]
    metric_result: bool


_QUESTIONS = TypeAdapter(Records[Question])
_RESULTS = TypeAdapter(Records[Result])


@data_format("genderbias_vl", file_column="path")
def read_genderbias_vl(base: Path | str, counterfactual: Path | str) -> ImageSet:
    """Read the questions of a context of GenderBias-VL.

    Parameters
    ----------
    base, counterfactual : path
        The questions about base images and about their counterfactuals, in the order of options
        without "swap" in the name of the file.

    Returns
    -------
    ImageSet
        With the columns `pair` (the id of the question), `version` ("base" or "counterfactual"),
        `occupations` (both options), `occupation` (of the image), `right` (its text as an option),
        `gender` (that the image shows), `question`, `first` and `second` (the option that more men
        have, and the other), and `path`. Ids are the version and the id: "base/62". Counts:
        "images", "pairs" and "occupation_pairs".

    Raises
    ------
    DataError
        When a file has another form, a question is there twice, or the two files have different
        questions.
    """
    parts = {"base": base, "counterfactual": counterfactual}
    questions, inputs = dict[str, list[Question]](), dict[str, FileFacts]()
    for version, path in parts.items():
        questions[version], digest = read_json(path, _QUESTIONS)
        Places(str(path), "question", [question.id for question in questions[version]], "questions")
        inputs[str(path)] = {**digest, "rows": len(questions[version])}
    _check_paired(questions["base"], questions["counterfactual"], str(counterfactual))
    male_first = {frozenset(question.occupations): "" for question in questions["base"]}
    for question in questions["base"]:
        pair = frozenset(question.occupations)
        male_first[pair] = male_first[pair] or question.occupations[0]
    rows = [
        _row(version, question, male_first[frozenset(question.occupations)])
        for version, listed in questions.items()
        for question in listed
    ]
    ids = [f"{row[1]}/{row[0]}" for row in rows]
    columns = dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    return image_set(
        ImageRecords(ids, columns), name=", ".join(map(str, parts.values())),
        format="GenderBias-VL", inputs=inputs,
        counts={
            "images": len(ids),
            "pairs": len(questions["base"]),
            "occupation_pairs": len(male_first),
        },
    )  # fmt: skip


def _row(version: str, question: Question, male_first: str) -> tuple[str, ...]:
    """Return the cells of an image."""
    occupation, other = question.occupations
    texts = (question.occ, question.occ_sim)
    first, second = texts if occupation == male_first else texts[::-1]
    female = other if occupation == male_first else occupation
    return (
        question.id, version, f"{male_first}, {female}", occupation, question.occ,
        question.gender if version == "base" else _OTHER[question.gender],
        question.query.partition(_OPTIONS)[0].strip(), first, second, question.image,
    )  # fmt: skip


def _check_paired(base: Sequence[Question], other: Sequence[Question], file: str) -> None:
    """Refuse counterfactuals of other images than the base images."""
    facts = {question.id: (question.occupations, question.gender) for question in base}
    for place, question in enumerate(other):
        expected = facts.get(question.id)
        if expected != (question.occupations, question.gender) or len(base) != len(other):
            raise DataError(
                f"the question {show(question.id)} is of {show(question.occ)}, "
                f"{show(question.occ_sim)} and {question.gender}; there are {len(other)} questions",
                file=f"{file}, [{place}]",
                expected=f"the {len(base)} questions of the other file, each with its occupations",
                fix="name the two files of one context",
            )


def read_genderbias_vl_results(
    questions: ImageSet,
    base: Path | str,
    base_swapped: Path | str,
    counterfactual: Path | str,
    counterfactual_swapped: Path | str,
) -> list[dict[str, str | float | bool]]:
    """Read a model's results, as the code of GenderBias-VL writes them.

    Parameters
    ----------
    questions : ImageSet
        Of `read_genderbias_vl`.
    base, base_swapped, counterfactual, counterfactual_swapped : path
        `OccBias_*.json` of base images and counterfactuals, in both orders of the options.

    Returns
    -------
    list of dict
        A row for each image and order: `image_id`, the columns of the image, `order` ("AB", or "BA"
        where `second` was shown first), `probability_A` and `probability_B` (of `first` and
        `second`), and `is_right`. An audit of questions reads it as the table of a model.

    Raises
    ------
    DataError
        When a file has another form, or other questions.
    """
    facts = {str(row["image_id"]): row for row in questions.table.to_dicts()}
    rows = list[dict[str, str | float | bool]]()
    for version, swapped, path in (
        ("base", False, base), ("base", True, base_swapped),
        ("counterfactual", False, counterfactual),
        ("counterfactual", True, counterfactual_swapped),
    ):  # fmt: skip
        results, _ = read_json(path, _RESULTS)
        names = {row["pair"] for row in facts.values()}
        if {result.id for result in results} != names or len(results) != len(names):
            raise DataError(
                f"it has {len(results)} results, such as {show(results[0].id)}",
                file=str(path),
                expected=f"one result for each of the {len(names)} questions",
                fix="name the results of the same questions",
            )
        rows += _result_rows(facts, results, version, swapped=swapped)
    return rows


def _result_rows(
    facts: dict[str, dict[str, str]], results: Sequence[Result], version: str, *, swapped: bool
) -> Iterator[dict[str, str | float | bool]]:
    for result in results:
        name = f"{version}/{result.id}"
        of_image = facts[name]
        # The right option is shown first, and second where the options are swapped.
        is_first = of_image["right"] == of_image["first"]
        right = result.probs[result.gt_choice]
        wrong = result.probs[1 - result.gt_choice]
        yield {
            **of_image,
            "order": "AB" if is_first != swapped else "BA",
            "probability_A": right if is_first else wrong,
            "probability_B": wrong if is_first else right,
            "is_right": result.metric_result,
        }
