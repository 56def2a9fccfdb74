"""`equipoise label`: let people label images of a run, and read their answers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click

from equipoise.cli.outputs import check_output, write_output
from equipoise.cli.terminal import PATH, json_option, say_json, say_values

if TYPE_CHECKING:
    from equipoise.review import Question, RunImages

_PAGE = b'<meta name="generator" content="equipoise labels">'
_TABLES = (
    "agreement", "disagreements", "errors", "estimates", "answers", "values", "thresholds",
)  # fmt: skip


class Options(TypedDict):
    """Options of the command by name; missing paths are None."""

    form: Path | None
    answers: tuple[str, ...]
    counted: str
    size: int
    seed: int
    model: str
    groups: str
    group: str
    subject: str
    outcome: str
    settle: bool
    folder: Path | None
    out: Path | None
    files: tuple[Path, ...]
    scores: Path | None
    show: str | None
    export: Path | None


@click.command(
    "label",
    epilog="Example: equipoise label runs/first --question right --images photos",
)
@click.argument("run", type=PATH)
@click.option(
    "--question",
    default="",
    metavar="NAME",
    help="visible, good, medium, right, person, class; or a text of your own with --answer.",
)
@click.option(
    "--form",
    type=PATH,
    metavar="FILE",
    help="In place of it: a file with a question, answers, and what they say of an attribute.",
)
@click.option(
    "--answer", "answers", multiple=True, metavar="TEXT", help="An answer to your own text."
)
@click.option(
    "--count",
    "counted",
    default="",
    metavar="ANSWER",
    help="Answer whose share by group is estimated [default: no, or the first].",
)
@click.option("--size", type=click.IntRange(1), default=200, show_default=True, help="Images.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--model", default="", metavar="NAME", help="Audited model [default: the first].")
@click.option(
    "--groups", default="", metavar="NAMES", help="Groups of the run, such as 'race × gender'."
)
@click.option(
    "--subject",
    default="",
    metavar="NAME",
    help="Class, concept, query or answer whose images alone are asked about.",
)
@click.option(
    "--outcome", default="", metavar="NAME", help="Outcome of these images, such as labelled."
)
@click.option(
    "--sharpen",
    "group",
    default="",
    metavar="GROUP",
    help="Draw the images that narrow the interval of GROUP against all others the most.",
)
@click.option(
    "--settle",
    is_flag=True,
    help="Show the images on which labellers disagree; with --read, accept answers that settle.",
)
@click.option(
    "--images",
    "folder",
    type=PATH,
    metavar="DIR",
    help="Folder of images named by their ids [default: as the configuration says].",
)
@click.option(
    "--out", type=PATH, metavar="FILE", help="The page [default: label.html, over an earlier one]."
)
@click.option(
    "--read", "files", type=PATH, multiple=True, metavar="FILE", help="Answers to read in."
)
@click.option("--scores", type=PATH, metavar="FILE", help="Table of image_id and filter scores.")
@click.option("--show", type=click.Choice(_TABLES), help="One table of the results alone.")
@click.option("--export", type=PATH, metavar="FILE", help="Write the labels as a CSV.")
@json_option
def label_command(run: Path, question: str, as_json: bool, **options: Unpack[Options]) -> None:
    """Let people label images of RUN, and read their labels.

    Draws a random sample by group and by what the run knows of each image, such as its label and
    prediction, and writes one page to label it with the keyboard. The page shows neither group,
    prediction nor score. With --read, --show or --export,
    reads answers in and says what all labels of the question show. docs/labels.md explains it.

    \b
    equipoise label runs/first --question right --read answers-ann.json --read answers-bo.csv
    equipoise label runs/first --question right --sharpen women --images photos
    """  # noqa: D301 - click's mark of lines that stay apart
    from equipoise import review
    from equipoise.core import ConfigError

    form = None if options["form"] is None else review.read_form(options["form"])
    if (form is None) == (not question):
        raise ConfigError("--question and --form: expected one of them. To do: give a question")
    if form is not None and options["answers"]:
        raise ConfigError("--answer: given, and the form has answers. To do: leave it out")
    question = question or str(form and form.question)
    about = {"subject": options["subject"], "outcome": options["outcome"]}
    stored = review.stored_name(question, **about)
    first = next(iter(review.read_draws(run, stored)), None)
    compared = {name: options[name] or getattr(first, name, "") for name in ("model", "groups")}
    images = review.load_images(run, **compared, **about)
    earlier_answers = () if first is None or question in review.QUESTIONS else first.answers
    if form is not None:
        question_spec = review.ask(form, counted=options["counted"], stored=stored)
    else:
        question_spec = review.find_question(
            question,
            answers=options["answers"] or earlier_answers,
            classes=images.classes,
            attribute=images.groups.name,
            counted=options["counted"],
            stored=stored,
        )
    reads = options["files"] or options["show"] or options["export"]
    output = (_results if reads else _page)(run, images, question_spec, options)
    (say_json if as_json else say_values)(output)


def _page(run: Path, images: RunImages, question: Question, options: Options) -> dict[str, Any]:
    """Write the page of a sample, or of the images to settle."""
    from equipoise import review

    out = options["out"] or Path("label.html")
    check_output(out, _PAGE)
    labels = review.read_labels(run).filter(question=question.name)
    draw = review.Draw(
        question.name, images.model, images.groups.name, "", question.counted, options["size"],
        options["seed"], options["group"], question.answers, options["subject"],
        options["outcome"],
    )  # fmt: skip
    place = {name: row for row, name in enumerate(images.ids.tolist())}
    if options["settle"]:
        chosen = [place[name] for name in review.disagreements(labels)["image_id"] if name in place]
        if not chosen:
            return {"images": 0, "notes": ["labellers disagree on no image: nothing to settle"]}
    else:
        rows, draw = review.draw_sample(run, images, draw, review.consensus(labels), labels)
        chosen = rows.tolist()
    ids = images.ids[chosen].tolist()
    pictures = review.find_pictures(run, options["folder"])
    label_texts = review.shown_labels(images, chosen) if question.names_label else []
    page = review.label_page(
        question,
        [review.key_of(name) for name in ids],
        review.thumbnails(pictures, ids),
        label_texts,
        labeller=review.SETTLED if options["settle"] else "",
        answered=review.count_by_labeller(labels, ids),
    )
    if not options["settle"]:
        # First: a page whose sample isn't noted would be drawn again.
        review.note_draw(run, draw)
    write_output(out, page, _PAGE)
    if options["settle"]:
        return {"page": str(out), "images": len(ids), "notes": ["read its answers with --settle"]}
    return {"page": str(out), "images": len(ids), "strata": review.strata_in_words(draw.level)}


def _results(run: Path, images: RunImages, question: Question, options: Options) -> dict[str, Any]:
    """Read answers into the run, and return the results of its labels."""
    from equipoise import review

    summary: dict[str, Any] = {}
    if options["files"]:
        answers = review.read_answers(
            options["files"],
            images.ids,
            {question.name: question.answers},
            settles=options["settle"],
        )
        review.add_labels(run, answers)
        n_answers = answers.filter(question=question.name).height
        summary = {
            "answers read": n_answers,
            "answers to other questions": answers.height - n_answers,
        }
    if options["export"]:
        labels = review.read_labels(run)
        write_output(options["export"], labels.write_csv(datetime_format="%Y-%m-%dT%H:%M:%S%.3fZ"))
        if not (options["files"] or options["show"]):
            return {"labels": labels.height, "export": str(options["export"])}
    tables = asdict(
        review.conclude(run, images, question, scores=options["scores"], seed=options["seed"])
    )
    if options["files"]:
        of_run = {review.ANSWERS: tables["answers"], review.VALUES: tables["values"]}
        review.keep_results(run, question.name, of_run)
    if options["show"]:
        return summary | {options["show"]: tables[options["show"]]}
    # A question without an answer in a table is said by its notes.
    return summary | {name: rows for name, rows in tables.items() if rows}
