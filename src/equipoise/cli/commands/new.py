"""`equipoise new`: a commented configuration to start from."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import click

from equipoise.audits.kinds import KINDS
from equipoise.cli.terminal import json_option, note, say, say_json

_EXAMPLE: Mapping[str, str] = {
    "labels": "labels.csv",
    "id": "image_id",
    "target": "label",
    "groups": "group",
    "model": "model",
    "table": "predictions.csv",
    "prediction": "prediction",
}
_QUESTIONS: Mapping[str, str] = {
    "labels": "Table of labels (CSV, Parquet or JSON lines), relative to the configuration",
    "id": "Its column that names the image",
    "target": "Its column of the true class",
    "groups": "Its columns to compare by, separated by commas",
    "model": "Name of the model",
    "table": "Table of the model's predictions",
    "prediction": "Its column of the predicted class",
}


@click.command("new")
@click.argument("config", type=click.Path(path_type=Path), default=Path("equipoise.yaml"))
@click.option(
    "--ask/--no-ask",
    default=None,
    help="Ask for the names of files and columns [default: on a terminal].",
)
@click.option(
    "--audit",
    "audit",
    type=click.Choice(KINDS),
    default="predictions",
    show_default=True,
    help="What to audit.",
)
@json_option
def command(config: Path, ask: bool | None, audit: str, as_json: bool) -> None:
    """Write a commented configuration to start from.

    CONFIG is where it goes, equipoise.yaml unless given.
    For predictions it asks, on a terminal, for the names of files and columns; otherwise it writes
    a template to fill in. A file that is there is never overwritten.
    """
    _refuse(config)
    questions = sys.stdin.isatty() if ask is None else ask
    if audit == "predictions":
        answers = {key: _ask(key) for key in _QUESTIONS} if questions else dict(_EXAMPLE)
        text = configuration(answers)
    else:
        text = template(audit)
    config.parent.mkdir(parents=True, exist_ok=True)
    try:
        with config.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        _refuse(config)
    if as_json:
        say_json({"config": config})
    else:
        say(f"wrote {config}")
        note(f"next: edit it, then 'equipoise plan {config}' and 'equipoise audit {config}'")


def _refuse(config: Path) -> None:
    from equipoise.core.errors import ConfigError

    if config.exists() or config.is_symlink():
        raise ConfigError(f"{config}: exists already. To do: choose another name")


def _ask(key: str) -> str:
    answer: str = click.prompt(_QUESTIONS[key], default=_EXAMPLE[key], err=True)
    return answer.strip()


def template(audit: str) -> str:
    """Return the text of the commented template of a kind of audit."""
    return files("equipoise.audits").joinpath(audit, "template.yaml").read_text(encoding="utf-8")


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
    return "".join(map(_escaped, json.dumps(value, ensure_ascii=False)))


def _escaped(character: str) -> str:
    return character if character.isprintable() else f"\\U{ord(character):08x}"


_TEMPLATE = """\
# An audit of predictions. Every key: docs/config.md. Paths are relative to this file.
audit: predictions

data:
  table: {labels}      # one row per image: CSV, Parquet or JSON lines
  id: {id}             # column that names the image
  target: {target}     # column of the true class
  groups: {groups}     # columns to compare by; a list within the list: their intersections
  # unit: person_id    # column of what repeats (person, scene), resampled as a whole
  # min_group_size: 30 # smaller groups are reported, not compared

models:
  {model}:
    table: {table}
    prediction: {prediction}       # column of the predicted class
    # map: {{"70+": "more than 70"}}  # predicted label to class
    # unknown: ["unsure"]          # texts that mean "do not know"
    # refused: ["cannot answer"]   # texts that mean a refusal

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
