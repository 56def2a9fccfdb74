"""A published study: its file, the configurations, and the report's tables."""

import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import chain
from operator import attrgetter
from pathlib import Path
from string import Template
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BeforeValidator, Field, model_validator

from equipoise.audits.config_fields import Listed, Name, Section, Text, among
from equipoise.audits.studies import STUDIES
from equipoise.core import Aggregate, AuditResult, ConfigError, Finding
from equipoise.metrics.spec import own_aggregate
from equipoise.report import blocks
from equipoise.report.blocks import Number, Table, has
from equipoise.report.text import interval, number

Place = Literal[
    "model",
    "metric",
    "aggregate",
    "change_from",
    "subject",
    "groups",
    "version",
    "group",
    "level",
    "parameter",
]
Where = Mapping[Place, str]
"""Fields of a finding; `level` is one of its groups, `parameter` one of its parameters."""


def _subjects(value: object) -> object:
    """Take a list of names for rows, each of the subject of this name."""
    return {name: {"subject": name} for name in value} if isinstance(value, list) else value


Places = Annotated[Mapping[Text, Where], Field(min_length=1), BeforeValidator(_subjects)]


class WordsConfig(Section):
    """Words of a study, which become a table with the columns `text` and `list`.

    Attributes
    ----------
    lexicon : str, optional
        Lexicon of the package that has the lists.
    lists : list of str, or mapping of str to list of str
        Names of its lists; or words by the name of their list.
    map : str, optional
        In place of lists: a mapping of the lexicon, from classes of a model to labels, which
        becomes a table with the columns `class` and `label`.
    """

    lexicon: Name | None = None
    lists: Mapping[Text, Listed[Text]] | Listed[Text] = ()
    map: Name | None = None

    @property
    def by_list(self) -> Mapping[str, Sequence[str]]:
        """The words of each list."""
        from equipoise.data.lexicons import lexicon

        if isinstance(self.lists, Mapping):
            return self.lists
        content = lexicon(str(self.lexicon)).content
        return {name: content[name] for name in self.lists}

    @property
    def text(self) -> str:
        """The table as CSV."""
        import polars as pl  # heavy, and the report needs none

        from equipoise.data.lexicons import lexicon

        if self.map is not None:
            pairs = [*lexicon(str(self.lexicon)).content[self.map].items()]
            return pl.DataFrame(pairs, ["class", "label"], orient="row").write_csv()
        rows = list[tuple[str, str]]()
        for name, words in self.by_list.items():
            rows += [(word, name) for word in words]
        return pl.DataFrame(rows, ["text", "list"], orient="row").write_csv()


class SourceTable(Section):
    """A table or figure of the source.

    Attributes
    ----------
    title : str
    rows : mapping of str to Where, or list of str
        Which findings a row shows; a name alone is a subject.
    columns : mapping of str to Where
        Which of these a column shows.
    printed : list of list of float, optional
        The source's numbers by row and column, null where it has none.
    note : str
        What to know of the comparison.
    format : str, optional
        Data set that the run must be of, by its format.
    """

    title: Name
    format: Name | None = None
    rows: Places
    columns: Places
    printed: Listed[Listed[float | None]] = ()
    note: str = ""

    @model_validator(mode="after")
    def _check_source_table(self) -> Self:
        wide = {len(row) for row in self.printed} | {len(self.columns)}
        if self.printed and (len(self.printed) != len(self.rows) or len(wide) > 1):
            raise ValueError(
                f"printed: expected {len(self.rows)} rows of {len(self.columns)} numbers"
            )
        return self


class Study(Section):
    """A published study.

    Attributes
    ----------
    question, source, data, licence, size, time : str
        What it asks; the publication; what the user brings, under which licence; how large that
        is, and how long a run takes.
    folder : str
        Of the data, beside the configuration unless the user names another.
    reproduces : list of str
        Tables and figures of the source.
    configs : mapping of str to str
        Configurations by name, the main one first; `${data}` stands for the folder,
        and `${name}` for a list of words.
    words : mapping of str to WordsConfig
        Tables of words by file name.
    files : mapping of str to str
        Further files by name, such as a plan of what to collect.
    tables : list of SourceTable
        What the report shows beside the source.
    """

    question: Name
    source: Name
    data: Name
    licence: Name
    folder: Name = "data"
    size: Name
    time: Name
    reproduces: Annotated[Listed[Name], Field(min_length=1)]
    configs: Annotated[Mapping[Name, Name], Field(min_length=1)]
    words: Mapping[Name, WordsConfig] = {}
    files: Mapping[Name, Name] = {}
    tables: Listed[SourceTable] = ()


def read_study(name: str) -> Study:
    """Return a study by its name.

    Raises
    ------
    ValueError
        When there is none of this name.
    """
    among("study", name, STUDIES)
    text = files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return Study.model_validate(yaml.safe_load(text))


def study_files(name: str, path: Path, data: Path | None) -> dict[Path, str]:
    """Return the files that start a study: configurations, the main one first, words and others.

    Parameters
    ----------
    name : str
    path : Path
        Where the main configuration goes; the other files go beside it.
    data : Path, optional
        The folder of the data; the study's own name for it, beside the configuration, if None.

    Raises
    ------
    ConfigError
        If a folder is given to a study that needs none.
    """
    study = read_study(name)
    if data is not None and not any("${data}" in body for body in study.configs.values()):
        raise ConfigError(f"--data: the study {name} needs no folder of data. To do: leave it out")
    folder = study.folder if data is None else data.absolute().as_posix()
    places = {"data": json.dumps(folder, ensure_ascii=False)[1:-1]}
    for words in study.words.values():
        for list_name, listed in words.by_list.items():
            places[list_name] = _yaml_list(listed)
    written: dict[Path, str] = {}
    for place, (part, config) in enumerate(study.configs.items()):
        body = Template(config).substitute(places)
        command, page = _command_of(yaml.safe_load(body))
        at = path if place == 0 else path.with_name(f"{path.stem}-{part}{path.suffix}")
        lines = [
            study.question,
            f"A study of {study.source}: {', '.join(study.reproduces)}.",
            f"Data: {study.data}.",
            f"Licence: {study.licence}. Size: {study.size}. Time: {study.time}.",
            f"Run it: equipoise {command} {at.name}",
            f"Every key: docs/{page}.md",
        ]
        comments = chain.from_iterable(map(_comment_lines, lines))
        written[at] = "\n".join([*comments, f"study: {name}", body])
    for file, words in study.words.items():
        written[path.with_name(file)] = words.text
    for file, text in study.files.items():
        written[path.with_name(file)] = text
    return written


def _command_of(values: Mapping[str, object]) -> tuple[str, str]:
    """Return the command that runs a configuration, and its page in docs."""
    commands = {
        "trainings": ("train", "training"),
        "faces": ("augment", "augmentation"),
        "recipes": ("mitigate", "mitigation"),
        "concepts": ("neurons", "neurons"),
    }
    kind = values.get("audit")
    page = "config" if kind == "predictions" else f"audits/{kind}"
    return next((commands[key] for key in commands if key in values), ("audit", page))


_UNBROKEN = "\N{NO-BREAK SPACE}"
_WHOLE: Mapping[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def _yaml_list(words: Iterable[str]) -> str:
    """Return a list as YAML on several lines, without breaking an item."""
    unbroken = [word.replace(" ", _UNBROKEN) for word in words]
    text = textwrap.fill(
        json.dumps(unbroken, ensure_ascii=False), 90, subsequent_indent=10 * " ", **_WHOLE
    )
    return text.replace(_UNBROKEN, " ")


def _comment_lines(text: str) -> list[str]:
    return textwrap.wrap(text, 98, initial_indent="# ", subsequent_indent="# ", **_WHOLE)


def source_tables(result: AuditResult) -> blocks.Section | None:
    """Return the source's tables with this run's numbers; None of a run of no study."""
    name = result.manifest.resolved.get("study")
    if name is None:
        return None
    study = read_study(str(name))
    images = result.manifest.resolved.get("data", {}).get("images") or {}
    formats = (None, images.get("format"))
    tables = {
        table.title: _fill_table(table, result.findings if table.format in formats else ())
        for table in study.tables
    }
    parts: list[blocks.Block | str] = [
        f"{study.source}. Each cell has this run's value with its interval and chance level, then "
        "the printed number."
    ]
    notes = {table.title: table.note for table in study.tables}
    for title, table in tables.items():
        if table is not None:
            parts += [table, *([notes[title]] if notes[title] else [])]
    unmeasured = [title for title, table in tables.items() if table is None]
    if unmeasured:
        parts.append(f"This run measures nothing of: {'; '.join(unmeasured)}.")
    return blocks.Section.of("study", "Comparison with the source", *parts)


def _fill_table(table: SourceTable, findings: Sequence[Finding]) -> Table | None:
    """Return a table of the source with this run's numbers; None without any."""
    rows: list[list[str | Number]] = []
    measured = False
    for place, (name, where) in enumerate(table.rows.items()):
        printed = table.printed[place] if table.printed else (None,) * len(table.columns)
        conditions = [{**where, **column} for column in table.columns.values()]
        models = dict[str, None]()
        for condition in conditions:
            if "model" not in condition:
                matches = _matching_findings(findings, condition)
                models |= dict.fromkeys(finding.model for finding in matches)
        for model in models or ("",):
            cells = list[str | Number]()
            for condition, printed_value in zip(conditions, printed, strict=True):
                matches = _matching_findings(findings, {"model": model, **condition})
                cells.append(_format_cell(matches, condition, printed_value))
            measured = measured or any(isinstance(cell, Number) for cell in cells)
            rows.append([f"{name}, {model}" if len(models) > 1 else name, *cells])
    columns = [
        blocks.Column("Row"),
        *(blocks.Column(name, format=blocks.NUMBER) for name in table.columns),
    ]
    return Table.of(table.title, columns, rows) if measured else None


_WITHIN = ("level", "parameter")


def _matching_findings(findings: Iterable[Finding], where: Where) -> list[Finding]:
    aggregate = own_aggregate(where["metric"]) if "metric" in where else Aggregate.VALUE
    defaults = {"version": "default", "group": "", "aggregate": aggregate.value, "change_from": ""}
    conditions: dict[str, str] = dict(defaults)
    for key, value in where.items():
        if key not in _WITHIN:
            conditions[key] = value
    fields_of, values = attrgetter(*conditions), tuple(conditions.values())
    return [finding for finding in findings if fields_of(finding) == values]


def _format_cell(findings: Sequence[Finding], where: Where, printed: float | None) -> str | Number:
    source = "" if printed is None else f"printed {printed:g}".replace("-", "−")
    level, parameter = where.get("level"), where.get("parameter")
    if level is not None:
        values = [
            (g.value, g.low, g.high) for f in findings for g in f.by_group if g.group == level
        ]
    elif parameter is not None:
        values = [(float(f.parameters[parameter]), math.nan, math.nan) for f in findings]
    else:
        values = [(f.value, f.ci_low, f.ci_high) for f in findings]
    if not values:
        return f"not in this run; {source}" if source else "not in this run"
    value, low, high = values[0]
    chance = findings[0].chance if level is None and parameter is None else math.nan
    parts = [
        f"{number(value)} {interval(low, high)}" if has(low) else number(value),
        f"chance {number(chance)}" if has(chance) else "",
        source,
    ]
    return Number("; ".join(filter(None, parts)), value, low, high)
