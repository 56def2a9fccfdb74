"""A published study: its file and the configurations."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from pathlib import Path
from string import Template
from types import ModuleType
from typing import Annotated, Any, Self

import yaml
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from equipoise.config.fields import Listed, Name, Section, Text, among, by_name, only_one
from equipoise.core import AuditResult, ConfigError
from equipoise.discovery import refused
from equipoise.studies import STUDIES
from equipoise.studies.chance import ChanceConfig
from equipoise.studies.conditions import StudyClaim
from equipoise.studies.quantities import AnyQuantity, Quantity, merged
from equipoise.studies.repetition import Settings
from equipoise.studies.works import Work, read_work


def _subjects(value: object) -> object:
    """Take a list of names for rows, each of the subject of this name."""
    return by_name(value, lambda name: {"subject": name}) if isinstance(value, list) else value


Places = Annotated[Mapping[Text, Settings], Field(min_length=1), BeforeValidator(_subjects)]


class WordsConfig(Section):
    """Words of a study, which become a table.

    Its columns are `text`, `list` and `number` (the place in the list); with templates `prompt`.

    Attributes
    ----------
    lexicon : str, optional
        Lexicon of the package that has the lists.
    lists : list of str, or mapping of str to list of str
        Names of its lists; or words by the name of their list.
    templates : mapping of str to str
        By list, a text with `{}` for the word.
    columns : list of str
        Further columns, which are empty: the user fills them in.
    map : str, optional
        In place of lists: a mapping of the lexicon, from classes of a model to labels, which
        becomes a table with the columns `class` and `label`.
    """

    lexicon: Name | None = None
    lists: Mapping[Text, Listed[Text]] | Listed[Text] = ()
    templates: Mapping[Text, Text] = {}
    columns: Listed[Name] = ()
    map: Name | None = None

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        if self.templates and {*self.templates} != {*self.lists}:
            raise ValueError(f"templates: expected one for each list, {', '.join(self.lists)}")
        return self

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
        rows = list[dict[str, str | int]]()
        for name, words in self.by_list.items():
            for number, word in enumerate(words, 1):
                rows.append({"text": word, "list": name, "number": number})
                rows[-1] |= dict.fromkeys(self.columns, "")
                if self.templates:
                    rows[-1]["prompt"] = self.templates[name].replace("{}", word)
        return pl.DataFrame(rows).write_csv()


class StudyTable(Section):
    """A table that shows numbers of a run, beside those of the source where it is a table of it.

    Attributes
    ----------
    of : str, optional
        The table of the source, by its number; its title, units, printed numbers and note are
        shown.
    title : str, optional
        Title of a table that the source doesn't have.
    rows, columns : mapping of str to mapping, or list of str
        The number that a row and a column show: keys of a quantity, a finding in most tables. A
        name alone is a subject. Names are those of the source, where it has cells. In texts `{row}`
        and `{column}` stand for these names.
    note : str
        What to know of the comparison.
    run : mapping, optional
        Settings that the run's configuration must have.
    """

    of: Name | None = None
    title: Name | None = None
    rows: Places
    columns: Places
    note: str = ""
    run: Settings = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_study_table(self) -> Self:
        only_one(self, "of", "title")
        for row in self.rows:
            for column in self.columns:
                self.quantity(row, column)
        return self

    def quantity(self, row: str, column: str) -> Quantity:
        """Return what a cell shows."""
        cell = merged(self.rows[row], self.columns[column])
        return _QUANTITY.validate_python(_named(cell, {"{row}": row, "{column}": column}))


def _named(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value whose texts have the names of the row and column in their places."""
    if isinstance(value, Mapping):
        return {key: _named(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, str):
        for place, name in names.items():
            value = value.replace(place, name)
    return value


_QUANTITY: TypeAdapter[Quantity] = TypeAdapter(AnyQuantity)


class Study(Section):
    """A published study.

    Attributes
    ----------
    question, source, data, licence, size, time : str
        What it asks; the publication; what the user brings, under which licence; how large that
        is, and how long a run takes.
    folder : str
        Of the data, beside the configuration unless the user names another.
    guide : str
        How to repeat it, in paragraphs of Markdown: what the user brings or changes, and what
        stands in for the source's.
    configs : mapping of str to str
        Configurations by name, the main one first; `${data}` stands for the folder,
        and `${name}` for a list of words.
    words : mapping of str to WordsConfig
        Tables of words by file name.
    files : mapping of str to str
        Further files by name, such as a plan of what to collect.
    published : str, optional
        The published work, whose tables and claims these are.
    tables : list of StudyTable
        What the report shows beside the source.
    claims : list of StudyClaim
        How claims of the source are judged.
    chance : list of ChanceConfig
        What a fair model gives under the sizes of the protocol.
    left_out : mapping of str to str
        Tables and figures of the source that no configuration repeats, with the reason.
    """

    question: Name
    source: Name
    data: Name
    licence: Name
    folder: Name = "data"
    size: Name
    time: Name
    guide: str = ""
    configs: Annotated[Mapping[Name, Name], Field(min_length=1)]
    words: Mapping[Name, WordsConfig] = {}
    files: Mapping[Name, Name] = {}
    published: Name | None = None
    tables: Listed[StudyTable] = ()
    claims: Listed[StudyClaim] = ()
    chance: Listed[ChanceConfig] = ()
    left_out: Mapping[Name, Name] = {}

    @model_validator(mode="before")
    @classmethod
    def _take_source(cls, values: Any) -> Any:
        """Take the source from the published work."""
        if isinstance(values, Mapping) and "source" not in values and "published" in values:
            return {**values, "source": read_work(values["published"]).source}
        return values

    @model_validator(mode="after")
    def _check_study(self) -> Self:
        for table in self.tables:
            if table.of is None:
                continue
            among("tables.of", table.of, self.work.tables)
            printed = self.work.tables[table.of]
            if printed.rows:
                among(f"tables.{table.of}.rows", table.rows, printed.rows)
                among(f"tables.{table.of}.columns", table.columns, printed.columns)
        among("claims.of", [claim.of for claim in self.claims], self.work.claims)
        among("left_out", self.left_out, self.work.tables)
        return self

    @property
    def reproduces(self) -> tuple[str, ...]:
        """Tables and figures of the source that a report shows."""
        return tuple(dict.fromkeys(table.of for table in self.tables if table.of))

    @property
    def work(self) -> Work:
        """The published work, without tables and claims where none is named."""
        return (
            read_work(self.published)
            if self.published
            else Work(title=self.source, source=self.source)
        )

    @cached_property
    def parsed_configs(self) -> list[Settings]:
        """The configurations, whose places for folders and words aren't filled in."""
        return [yaml.safe_load(config) for config in self.configs.values()]


@cache
def read_study(name: str) -> Study:
    """Return a study by its name.

    Raises
    ------
    ValueError
        When there is none of this name.
    PluginError
        When its file can't be read.
    """
    among("study", name, STUDIES)
    place = STUDIES[name]
    file = files(place.load(ModuleType)).joinpath(f"{name}.yaml")
    fix = f"correct the file, or update {place.package}"
    try:
        return Study.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise refused(f"{place} has no file {file.name}", fix, place) from error
    except (ValidationError, yaml.YAMLError) as error:
        raise refused(f"{file}: {error}", fix, place) from error


def study_of(result: AuditResult) -> Study | None:
    """Return the study that a run repeats; None of a run of no study."""
    name = result.manifest.resolved.get("study")
    return None if name is None else read_study(str(name))


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
    for part, config in study.configs.items():
        body = Template(config).substitute(places)
        command, page = command_of(yaml.safe_load(body))
        at = config_path(study, part, path)
        lines = [
            study.question,
            f"A study of {': '.join(filter(None, (study.source, ', '.join(study.reproduces))))}.",
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


def config_path(study: Study, part: str, main: Path) -> Path:
    """Return the path of one of a study's configurations, beside the main one."""
    first = next(iter(study.configs))
    return main if part == first else main.with_name(f"{main.stem}-{part}{main.suffix}")


def command_of(values: Settings) -> tuple[str, str]:
    """Return the command that runs a configuration, and its page in docs."""
    commands = {
        "trainings": ("train", "training"),
        "faces": ("augment", "augmentation"),
        "recipes": ("mitigate", "mitigation"),
        "concepts": ("neurons", "neurons"),
    }
    page = f"audits/{values.get('audit')}"
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
