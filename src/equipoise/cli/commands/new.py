"""The commands `new` and `metrics`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import click

from equipoise.audits.kinds import KINDS
from equipoise.cli.outputs import check_output, write_output
from equipoise.cli.terminal import PATH, json_option, note, say, say_json, say_table, say_values
from equipoise.core.errors import ConfigError

STUDIES = {
    "trends-by-region": {
        "trend-words.csv": (
            "mandal_2024_words",
            "positive negative adjectives_men adjectives_women occupations_men occupations_women",
        )
    },
    "predicted-labels": {
        "occupation-labels.csv": ("mandal_2024_words", "occupations"),
        "gender-words.csv": ("mandal_2024_gender", "men women"),
    },
}
"""By published study its tables of words: the lexicon of each, and its lists."""

_QUESTIONS = {
    "labels": (
        "labels.csv",
        "Table of labels (CSV, Parquet or JSON lines), relative to the configuration",
    ),
    "id": ("image_id", "Its column that names the image"),
    "target": ("label", "Its column of the true class"),
    "groups": ("group", "Its columns to compare by, separated by commas"),
    "model": ("model", "Name of the model"),
    "table": ("predictions.csv", "Table of the model's predictions"),
    "prediction": ("prediction", "Its column of the predicted class"),
}


@click.command("new")
@click.argument("config", type=PATH, default=Path("equipoise.yaml"))
@click.option(
    "--ask/--no-ask",
    default=None,
    help="Ask for the names of files and columns [default: on a terminal].",
)
@click.option(
    "--audit",
    "audit",
    type=click.Choice(KINDS),
    help="What to audit [default: predictions].",
)
@click.option(
    "--study",
    type=click.Choice([*STUDIES]),
    help="Start from a published study, with its words in tables beside the configuration.",
)
@json_option
def new_command(
    config: Path, ask: bool | None, audit: str | None, study: str | None, as_json: bool
) -> None:
    """Write a commented configuration to start from.

    CONFIG is where it goes, equipoise.yaml unless given.
    For predictions it asks, on a terminal, for the names of files and columns; otherwise it writes
    a template to fill in. A file that is there is never overwritten.
    """
    if study is not None and audit is not None:
        raise ConfigError("--audit and --study are both given. To do: give one of them")
    check_output(config)
    if study is None:
        written = {config: _text(audit or "predictions", ask)}
    else:
        written = {config: template("studies", study)}
        for name, (source, lists) in STUDIES[study].items():
            written[config.with_name(name)] = _words(source, lists.split())
    for path in written:
        check_output(path)
    for path, text in written.items():
        write_output(path, text)
    tables = [path for path in written if path != config]
    if as_json:
        say_json({"config": config, **({"tables": tables} if tables else {})})
        return
    for path in written:
        say(f"wrote {path}")
    note(f"next: edit it, then 'equipoise plan {config}' and 'equipoise audit {config}'")


def _text(audit: str, ask: bool | None) -> str:
    if audit != "predictions":
        return template(audit)
    answers = {key: example for key, (example, _) in _QUESTIONS.items()}
    if sys.stdin.isatty() if ask is None else ask:
        for key, (example, question) in _QUESTIONS.items():
            answers[key] = click.prompt(question, default=example, err=True).strip()
    return configuration(answers)


def _words(source: str, lists: Sequence[str]) -> str:
    """Return words of a lexicon, each with the name of its list, as CSV."""
    import polars as pl  # heavy, and the help needs none

    from equipoise.data.lexicons import lexicon

    content = lexicon(source).content
    rows = [(word, name) for name in lists for word in content[name]]
    return pl.DataFrame(rows, ["text", "list"], orient="row").write_csv()


def template(audit: str, name: str = "template") -> str:
    """Return the text of the commented template of a kind of audit."""
    return files("equipoise.audits").joinpath(audit, f"{name}.yaml").read_text(encoding="utf-8")


def configuration(answers: Mapping[str, str]) -> str:
    """Return the text of a commented configuration.

    Parameters
    ----------
    answers : mapping
        `labels`, `id`, `target`, `groups` (separated by commas), `model`, `table`, `prediction`.
    """
    names = [name.strip() for name in answers["groups"].split(",") if name.strip()]
    groups = [*names, names] if len(names) > 1 else names
    filled = {key: _quoted(value) for key, value in answers.items()}
    return _TEMPLATE.format(**filled | {"groups": _quoted(groups)})


def _quoted(value: object) -> str:
    """Return a value as YAML reads it: JSON, but for pairs of escapes that mean one character."""
    return "".join(
        character if character.isprintable() else f"\\U{ord(character):08x}"
        for character in json.dumps(value, ensure_ascii=False)
    )


_TEMPLATE = """\
# An audit of predictions. Every key: docs/config.md. Paths are relative to this file.
audit: predictions

data:
  table: {labels}      # one row per image: CSV, Parquet or JSON lines
  id: {id}             # column that names the image
  target: {target}     # column of the true class
  groups: {groups}     # columns to compare by; a list within the list: their intersections
  # images:            # to run a model: the pictures, in place of table and id
  #   table: {labels}
  #   id: {id}
  #   path: file       # column of the image's file
  #   root: pictures   # the folder that these start from
  # In place of a table: a folder, or a data set in its own format, and rules: docs/images.md.
  # unit: person_id    # column of what repeats (person, scene), resampled as a whole
  # min_group_size: 30 # smaller groups are reported, not compared

models:
  {model}:
    table: {table}
    prediction: {prediction}       # column of the predicted class
    # map: {{"70+": "more than 70"}}  # predicted label to class
    # unknown: ["unsure"]          # texts that mean "do not know"
    # refused: ["cannot answer"]   # texts that mean a refusal
  # clip:              # to run a model on the images, instead or besides: docs/running.md
  #   model: "hf:openai/clip-vit-base-patch32"   # or open_clip:, timm:, onnx:, python:
  #   vocabulary: [doctor, nurse]  # classes that it chooses between; a classifier has its own
  #   templates: openai_7          # what the classes are put into

# extraction:          # to run a model: where what it says is kept, and how it is run
#   store: evidence
#   device: auto       # cuda where there is one, else cpu

# Every metric that the input allows is measured; options by name, false switches one off.
# metrics:
#   skewsize: {{min_expected: 0}}
#   hit_rate: false

resampling:
  replicates: 1000   # bootstrap replicates of the intervals
  seed: 0            # the same seed gives the same bytes

testing:
  alpha: 0.05        # level of significance of the corrected p-values
  correction: benjamini-hochberg
  # thresholds: {{accuracy_gap: 0.05}}  # from when on a difference matters

# What `equipoise check` requires.
# gate:
#   - {{metric: worst_group_accuracy, min: 0.6}}
"""


_FIELDS = [
    "title",
    "symbol",
    "kinds",
    "definition",
    "range",
    "unit",
    "harm",
    "direction",
    "chance",
    "interval",
    "null",
    "threshold",
    "parameters",
    "threshold_reason",
    "reference",
    "errata",
]


@click.command("metrics")
@click.argument("name", required=False)
@json_option
def metrics_command(name: str | None, as_json: bool) -> None:
    """List the metrics, or show the card of NAME.

    A card gives the definition, range, direction of harm, chance level, practical threshold and
    reference.
    """
    from equipoise.audits.config_yaml import nearest
    from equipoise.core.errors import InputError
    from equipoise.metrics import SPECS

    if name is not None and name not in SPECS:
        raise InputError(
            f"no metric is called {name!r}. There are: {', '.join(SPECS)}{nearest(name, SPECS)}"
        )
    cards = {
        key: {"name": key} | {field: getattr(spec, field) for field in _FIELDS}
        for key, spec in SPECS.items()
        if name in (None, key)
    }
    if as_json:
        say_json(cards)
    elif name is None:
        rows = sorted(SPECS.values(), key=lambda spec: spec.kinds[0])
        cells = [(spec.name, spec.kinds[0], spec.range, spec.title) for spec in rows]
        say_table(("metric", "audit", "range", "title"), cells)
        say("\n'equipoise metrics NAME' shows a whole card.")
    else:
        say_values({field: value for field, value in cards[name].items() if value})
