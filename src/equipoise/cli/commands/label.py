"""`equipoise label`: let people label images of a run, and read their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar, Unpack

import click

from equipoise.cli.groups import SuggestingGroup
from equipoise.cli.outputs import check_output, write_output
from equipoise.cli.terminal import PATH, json_option, say_json, say_values

if TYPE_CHECKING:
    from equipoise.review import Question, RunImages

_PAGE = b'<meta name="generator" content="equipoise labels">'
_TABLES = (
    "agreement", "disagreements", "errors", "estimates", "answers", "values", "thresholds",
)  # fmt: skip
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Options(TypedDict):
    """Options of every command about a question; missing paths are None."""

    question: str
    form: Path | None
    answers: tuple[str, ...]
    counted: str
    model: str
    groups: str
    subject: str
    outcome: str


class _Task(NamedTuple):
    """The images of a run, and the question about them."""

    run: Path
    images: RunImages
    question: Question


_run = click.argument("run", type=PATH)
_scores = click.option(
    "--scores", type=PATH, metavar="FILE", help="Table of image_id and scores of filters."
)
_images = click.option(
    "--images",
    "folder",
    type=PATH,
    metavar="DIR",
    help="Folder of images named by their ids [default: as the configuration says].",
)


def _out(default: str) -> Callable[[_Function], _Function]:
    return click.option(
        "--out", type=PATH, default=Path(default), show_default=True, metavar="FILE",
        help="The page; an earlier one is replaced.",
    )  # fmt: skip


_seed = click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Random seed."
)
_QUESTION_OPTIONS = (
    click.option(
        "--question",
        default="",
        metavar="NAME",
        help="visible, good, medium, right, person, class; or your own text with --answer.",
    ),
    click.option(
        "--form", type=PATH, metavar="FILE", help="File with your own question and its answers."
    ),
    click.option(
        "--answer", "answers", multiple=True, metavar="TEXT", help="An answer to your own question."
    ),
    click.option(
        "--count",
        "counted",
        default="",
        metavar="ANSWER",
        help="Answer whose share is estimated by group [default: no, or the first].",
    ),
    click.option("--model", default="", metavar="NAME", help="Audited model [default: the first]."),
    click.option(
        "--groups", default="", metavar="NAMES", help="Groups of the run, such as 'race × gender'."
    ),
    click.option(
        "--subject",
        default="",
        metavar="NAME",
        help="Class, concept, query or answer; only its images are labelled.",
    ),
    click.option(
        "--outcome", default="", metavar="NAME", help="Outcome of these images, such as labelled."
    ),
)


def _about_question(command: _Function) -> _Function:
    """Add the options that say which question is asked about which images."""
    for option in reversed(_QUESTION_OPTIONS):
        command = option(command)
    return command


@click.group(
    "label",
    cls=SuggestingGroup,
    epilog="Example: equipoise label sample runs/first --question right",
)
def label_command() -> None:
    """Let people label images of a run, and read their labels.

    A run holds its labels. Start with `sample`, let people label the page, and give their answers
    to `read`. docs/labels.md explains the questions and the results.
    """


@label_command.command(
    "sample", epilog="Example: equipoise label sample runs/first --question right --images photos"
)
@_run
@_about_question
@click.option(
    "--size",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    metavar="N",
    help="Number of images.",
)
@_seed
@click.option(
    "--sharpen",
    "group",
    default="",
    metavar="GROUP",
    help="Draw the images that narrow the interval of GROUP the most.",
)
@_images
@_out("label.html")
@json_option
def sample(
    run: Path,
    size: int,
    seed: int,
    group: str,
    folder: Path | None,
    out: Path,
    as_json: bool,
    **options: Unpack[Options],
) -> None:
    """Write a page to label a random sample of images.

    The sample is stratified by group, label and prediction, as far as the run has them. The page
    hides group, prediction and score.
    """
    from equipoise import review

    task = _task(run, options)
    question, images = task.question, task.images
    check_output(out, _PAGE)
    labels = review.read_labels(run).filter(question=question.name)
    draw = review.Draw(
        question.name, images.model, images.groups.name, "", question.counted, size, seed, group,
        question.answers, options["subject"], options["outcome"],
    )  # fmt: skip
    rows, draw = review.draw_sample(run, images, draw, review.consensus(labels), labels)
    page = _page(task, rows.tolist(), folder)
    # First: a page whose sample isn't noted would be drawn again.
    review.note_draw(run, draw)
    write_output(out, page, _PAGE)
    strata = review.strata_in_words(draw.level)
    _print({"page": str(out), "images": len(rows), "strata": strata}, as_json)


@label_command.command(
    "settle", epilog="Example: equipoise label settle runs/first --question right --images photos"
)
@_run
@_about_question
@_images
@_out("settle.html")
@json_option
def settle(
    run: Path, folder: Path | None, out: Path, as_json: bool, **options: Unpack[Options]
) -> None:
    """Write a page of the images on which labellers disagree.

    Give its answers to `label read --settled`.
    """
    from equipoise import review

    task = _task(run, options)
    check_output(out, _PAGE)
    labels = review.read_labels(run).filter(question=task.question.name)
    place = {name: row for row, name in enumerate(task.images.ids.tolist())}
    rows = [place[name] for name in review.disagreements(labels)["image_id"] if name in place]
    if not rows:
        notes = ["labellers disagree on no image: nothing to settle"]
        _print({"images": 0, "notes": notes}, as_json)
        return
    write_output(out, _page(task, rows, folder, review.SETTLED), _PAGE)
    notes = ["read its answers with 'equipoise label read --settled'"]
    _print({"page": str(out), "images": len(rows), "notes": notes}, as_json)


@label_command.command(
    "read",
    epilog="Example: equipoise label read runs/first ann.json bo.csv --question right",
)
@_run
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=PATH)
@_about_question
@click.option("--settled", is_flag=True, help="Accept the answers of a page from `label settle`.")
@_scores
@_seed
@json_option
def read(
    run: Path,
    files: tuple[Path, ...],
    settled: bool,
    scores: Path | None,
    seed: int,
    as_json: bool,
    **options: Unpack[Options],
) -> None:
    """Read answers into a run, and print the results.

    FILE is the JSON or CSV that a page saved, or an export.
    """
    from equipoise import review

    task = _task(run, options)
    question = task.question
    answers = review.read_answers(
        files, task.images.ids, {question.name: question.answers}, settles=settled
    )
    review.add_labels(run, answers)
    n_answers = answers.filter(question=question.name).height
    counts = {"answers read": n_answers, "answers to other questions": answers.height - n_answers}
    tables = asdict(review.conclude(run, task.images, question, scores=scores, seed=seed))
    of_run = {review.ANSWERS: tables["answers"], review.VALUES: tables["values"]}
    review.keep_results(run, question.name, of_run)
    _print(counts | _filled(tables), as_json)


@label_command.command(
    "show", epilog="Example: equipoise label show runs/first errors --question right"
)
@_run
@click.argument("table", type=click.Choice(_TABLES), metavar="[TABLE]", required=False)
@_about_question
@_scores
@_seed
@json_option
def show(
    run: Path,
    table: str | None,
    scores: Path | None,
    seed: int,
    as_json: bool,
    **options: Unpack[Options],
) -> None:
    """Print the results of the labels, or one TABLE of them.

    TABLE is agreement, disagreements, errors, estimates, answers, values or thresholds.
    """
    from equipoise import review

    task = _task(run, options)
    tables = asdict(review.conclude(run, task.images, task.question, scores=scores, seed=seed))
    _print(_filled(tables) if table is None else {table: tables[table]}, as_json)


@label_command.command("export", epilog="Example: equipoise label export runs/first labels.csv")
@_run
@click.argument("file", type=PATH)
@json_option
def export(run: Path, file: Path, as_json: bool) -> None:
    """Write all labels of a run to FILE, as CSV."""
    from equipoise import review

    labels = review.read_labels(run)
    write_output(file, labels.write_csv(datetime_format="%Y-%m-%dT%H:%M:%S%.3fZ"))
    _print({"labels": labels.height, "export": str(file)}, as_json)


def _task(run: Path, options: Options) -> _Task:
    """Return the images of a run, and the question that the options name."""
    from equipoise import review
    from equipoise.core import ConfigError

    name = options["question"]
    form = None if options["form"] is None else review.read_form(options["form"])
    if (form is None) == (not name):
        raise ConfigError("--question or --form: expected one of them. To do: add --question right")
    if form is not None and options["answers"]:
        raise ConfigError("--answer: the form has the answers already. To do: leave it out")
    name = name or str(form and form.question)
    about = {"subject": options["subject"], "outcome": options["outcome"]}
    stored = review.stored_name(name, **about)
    first = next(iter(review.read_draws(run, stored)), None)
    compared = {
        "model": options["model"] or getattr(first, "model", ""),
        "groups": options["groups"] or getattr(first, "groups", ""),
    }
    images = review.load_images(run, **compared, **about)
    earlier_answers = () if first is None or name in review.QUESTIONS else first.answers
    if form is not None:
        question = review.ask(form, counted=options["counted"], stored=stored)
    else:
        question = review.find_question(
            name,
            answers=options["answers"] or earlier_answers,
            classes=images.classes,
            attribute=images.groups.name,
            counted=options["counted"],
            stored=stored,
        )
    return _Task(run, images, question)


def _page(task: _Task, rows: list[int], folder: Path | None, labeller: str = "") -> str:
    """Return the page to label some images."""
    from equipoise import review

    ids = task.images.ids[rows].tolist()
    pictures = review.find_pictures(task.run, folder)
    labels = review.shown_labels(task.images, rows) if task.question.names_label else []
    keys = [review.key_of(name) for name in ids]
    thumbnails = review.thumbnails(pictures, ids)
    stored = review.read_labels(task.run).filter(question=task.question.name)
    return review.label_page(
        task.question,
        keys,
        thumbnails,
        labels,
        labeller=labeller,
        answered=review.count_by_labeller(stored, ids),
    )


def _filled(tables: Mapping[str, Any]) -> dict[str, Any]:
    # Notes say why a table is empty.
    return {name: rows for name, rows in tables.items() if rows}


def _print(values: dict[str, Any], as_json: bool) -> None:
    (say_json if as_json else say_values)(values)
