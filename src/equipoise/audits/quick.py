"""The config of an audit of predictions, guessed from one table."""

import codecs
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import Any, Protocol, TypedDict, Unpack, get_args

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl
from narwhals.typing import IntoDataFrame

from equipoise.audits.config import parse_config
from equipoise.audits.model_cache import open_model
from equipoise.audits.quick_rows import FORMS, ID, RowRoles, guess_rows
from equipoise.audits.quick_tables import OUTPUT, TableForm, guess_form, guess_results
from equipoise.audits.running import run
from equipoise.audits.sections import (
    ConfigSource,
    Setting,
    config_of,
    has_key,
    is_config,
    read_config,
)
from equipoise.config.fields import ExtractionConfig, RunConfig, ThresholdRule, called
from equipoise.core import ConfigError, DataError, EquipoiseError, Fields, InputError, Strings
from equipoise.data import Coded, read_table
from equipoise.data.problems import check_columns, listed, looks_missing, nearest
from equipoise.data.quantities import check_predicted, is_quantity
from equipoise.data.sentinels import sentinels_of
from equipoise.data.spreadsheets import XLSX
from equipoise.data.tables import LISTS, TableRecipe, TableSource, open_table
from equipoise.metrics.spec import SPECS
from equipoise.models.modules import as_model
from equipoise.models.protocols import DESCRIPTIONS, Model, offer_of
from equipoise.models.registry import find_adapter
from equipoise.report.result import Result

_NUMBER = r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)\s*%?\s*"
_YES = {"1", "true", "t", "yes", "y", "positive", "pos", "present"}
_NO = {"0", "false", "f", "no", "n", "negative", "neg", "absent"}
_MOST_VALUES = 12
# Rows whose files are looked for in a folder.
_PROBED = 1000
_FEW_TEXTS = 0.05
_AGES = (18, 30, 45, 60)
_STORE = ExtractionConfig().store
_OPTION = re.compile(r"--([a-z]+)")
_OF_TABLES = ("pred", "score", "answer", "threshold", "features")
"""Arguments that a table without a kind of audit has."""
_NAMED = {
    "target", "groups", "pred", "score", "threshold", "model", "images", "features", "positive",
    "id", "unit", "answer", "queries", "missing",
}  # fmt: skip


class Predictor(Protocol):
    """A fitted estimator, as scikit-learn has them."""

    def predict(self, features: Any, /) -> npt.ArrayLike:
        """Return a label for each row of a data frame."""
        ...


class ColumnChoices(TypedDict, total=False):
    """Columns and models that a user may name; the rest is guessed.

    Attributes
    ----------
    pred : str or sequence of str
        Columns of predicted labels, a model each; numbers are taken for scores. Guessed from
        names such as `pred` and `score` where there is no model and no score.
    score : str or sequence of str
        Columns of scores of the positive class, a model each.
    threshold : float or str
        Scores from it on count as positive; or the rule that chooses it, `balanced_accuracy`
        unless given, or "fpr=0.001" for a false positive rate.
    model : str, sequence of str, model, or mapping of names to models
        Models to run on the images.
    images : path
        Folder of the images, which a column of the table names.
    positive : str
        Of two classes the one whose rates are reported; guessed where it is written as 1, true,
        yes or positive and the other isn't, else both.
    id, unit : str
        Columns that name the image, and what repeats; guessed from names and values. A unit of ""
        is none: rows are independent.
    answer : str or sequence of str
        Columns of answers in words, a model each. The audit is then of answers.
    queries : path or data frame
        Table of queries, or a list (.txt) with one a line, for which `model` ranks the images. The
        audit is then of retrieval.
    missing : str or sequence of str
        Texts that mean a missing value, besides empty cells and texts such as NA.
    labels : str or sequence of str
        Columns of labels to compare, of a data set without predictions.
    """

    pred: str | Sequence[str]
    score: str | Sequence[str]
    threshold: float | str | None
    model: str | Sequence[str] | Mapping[str, Model] | Model
    images: str | os.PathLike[str] | None
    positive: str | None
    id: str | None
    unit: str | None
    answer: str | Sequence[str]
    queries: TableSource | None
    missing: str | Sequence[str]
    labels: str | Sequence[str]


@dataclass(frozen=True)
class Guess:
    """A config and the guesses in it.

    Attributes
    ----------
    cells : mapping
        How the cells of the table are written.
    images : mapping
        What names an image, and rules that make groups.
    data : mapping
        Target, groups and unit.
    models : mapping of str to mapping
        Sections of the models, without tables.
    root : path or None
        Folder of the images.
    notes : tuple of str
        Each guess in words.
    guessed_unit : str
        The unit, where it was guessed; "" elsewhere.
    audit : str
        Kind of audit: "predictions", "regression" where the target is a number, "dataset"
        without predictions, "answers", or "retrieval".
    steps : mapping
        Steps from the table to its columns; see `TableConfig`.
    queries : mapping
        Table of queries, its column, and the header of a list without one.
    options : tuple of str
        Options of `equipoise quick` that name the guessed columns.
    """

    cells: Mapping[str, Any]
    images: Mapping[str, Any]
    data: Mapping[str, Any]
    models: Mapping[str, Mapping[str, Any]]
    root: Path | None
    notes: tuple[str, ...]
    guessed_unit: str = ""
    audit: str = "predictions"
    steps: Mapping[str, Any] = field(default_factory=dict)
    queries: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()

    def config(self, table: TableSource, folder: Path | None = None) -> Fields:
        """Return the config that reads `table`.

        Parameters
        ----------
        table : path or data frame
        folder : Path, optional
            Paths are relative to it; to the present folder unless given.
        """

        def relative_path(path: str | os.PathLike[str]) -> str:
            return Path(os.path.relpath(path, folder or ".")).as_posix()

        def located(file: Any) -> Any:
            return relative_path(file) if isinstance(file, str | os.PathLike) and folder else file

        source = located(table)
        source = {"file": source, **deepcopy(self.steps)} if self.steps else source
        images = {"table": source, **deepcopy(self.cells), **self.images}
        images |= {} if self.root is None else {"root": relative_path(self.root)}
        nested = self.audit in ("dataset", "retrieval") or {"rules", "path"} & {*images}
        source_columns = {"table": source, **deepcopy(self.cells)}
        run = {"extraction": {"store": relative_path(_STORE)}} if self.root is not None else {}

        def section_of(section: Mapping[str, Any]) -> dict[str, Any]:
            if "model" not in section:
                return {**source_columns, **section}
            if not isinstance(section["model"], str):
                return {**section}
            library, _, name = section["model"].partition(":")
            resolved_name = relative_path(name) if Path(name).exists() else name
            return {**section, "model": f"{library}:{resolved_name}"}

        models = {name: section_of(section) for name, section in self.models.items()}
        return {
            "audit": self.audit,
            "data": {**({"images": images} if nested else images), **self.data},
            **({"queries": self._queries(located(self.queries["table"]))} if self.queries else {}),
            **({"models": models} if models else {}),
            **run,
        }

    def _queries(self, table: Any) -> Fields:
        """Return the section of the queries, whose table is located already."""
        header = self.queries.get("header")
        source = {"file": table, "header": [*header]} if header else table
        return {"table": source, "id": self.queries["id"]}


def guess_config(
    table: TableSource,
    *,
    target: str | None = None,
    groups: Sequence[str] = (),
    **named: Unpack[ColumnChoices],
) -> Guess:
    """Return the config of an audit of a table; see `audit`.

    Without predictions and a target, the audit is of a data set.

    Raises
    ------
    DataError
        When the table can't be read, lacks a column, or holds what can't be guessed.
    InputError
        When nothing says what was predicted.
    ConfigError
        When a model answers questions, or its images aren't named.
    """
    for name, outputs in (("pred", named.get("pred")), ("score", named.get("score"))):
        if target is not None and target in _as_list(outputs):
            raise InputError(
                f"{name}: {target!r} is the target, too, and labels would be compared with "
                "themselves. To do: name the column of predictions"
            )
    kind, labels = _kind_of(named, target), _labels_of(named, target)
    for model in _live_models(named.get("model")).values():
        if isinstance(model, str):
            find_adapter(model)
    encoding = "utf-8" if guess_results(table) else encoding_of(table)
    form = guess_form(
        table, encoding=encoding, target=target, groups=groups, outputs=_outputs(named),
        labels=labels, runs_model=bool(named.get("model")), needs_labels=not kind,
    )  # fmt: skip
    if form.outputs:
        named["pred"] = form.outputs
    return _guess_of_form(form, encoding, named)


def _guess_of_form(form: TableForm, encoding: str, named: ColumnChoices) -> Guess:
    """Return the config of a table with known columns of labels and groups."""
    target, groups, outputs = form.target, form.groups, _outputs(named)
    _check_groups(groups, target, outputs)
    used = [*filter(None, [target, named.get("id"), named.get("unit")]), *groups, *outputs]
    columns, missing, file = _read_columns(
        form.source, encoding, used, _as_list(named.get("missing"))
    )
    sentinels = {name: _take_sentinels(columns, name) for name in groups if name != target}
    # A list of texts replaces the rule for sentinels, and is for the target, too.
    if missing and target is not None:
        classes = {*_classes(columns[target])}
        sentinels = {name: tuple({*texts} - classes) for name, texts in sentinels.items()}
    for name in groups:
        _check_numbers(columns[name], file)
    bands = {name: bounds for name in groups if (bounds := _guess_bounds(columns[name]))}
    named_labels = _as_list(named.get("labels"))
    other_names = [
        name for name in columns if name not in {target, *outputs, *groups, *named_labels}
    ]
    roles = guess_rows(
        columns, other_names, id_column=named.get("id"), unit=named.get("unit"),
        one_model=bool(named.get("model")),
    )  # fmt: skip
    ids = [columns[name] for name in other_names if name == named.get("id") or ID.fullmatch(name)]
    root, images = _find_images(ids, file, named)
    models = _Models({}, {}, "dataset")
    if kind := _kind_of(named, target):
        models = _models_of_kind(kind, roles, named)
    elif target is not None:
        models = _models_of_target(columns, target, file, other_names, roles, named)
    listed_texts = dict.fromkeys(["", *missing, *chain.from_iterable(sentinels.values())])
    of_images: dict[str, Any] = {"missing": [*listed_texts]} if missing else {}
    of_images |= {"rules": rules} if (rules := _rules_of_bands(bands)) else {}
    notes = (
        f"encoding: {encoding}" if encoding != "utf-8" else "",
        *form.notes,
        f"missing: {listed(missing)}" if missing else "",
        *(f"{name}, missing: {listed(texts)}" for name, texts in sentinels.items() if texts),
        f"positive: {models.positive or 'none; every class is reported'}"
        if models.kind == "predictions"
        else "",
        *roles.notes,
        *(f"{name}: bands {', '.join(_band_names(bounds))}" for name, bounds in bands.items()),
        *models.notes,
        *(f"images: {root}, named by {images['path']}" for _ in images),
    )
    return Guess(
        ({"missing": ["", *missing]} if missing else {})
        | ({"encoding": encoding} if encoding != "utf-8" else {}),
        {"id": roles.id, **models.where, **of_images, **images},
        _data_section(form, bands, models, roles.unit),
        models.sections,
        root,
        tuple(filter(None, notes)),
        (roles.unit or "") if roles.guessed else "",
        models.kind,
        form.steps,
        models.queries,
        _options(form, models.sections),
    )


def _check_groups(groups: Strings, target: str | None, outputs: Sequence[str]) -> None:
    """Refuse groups that are the target or predictions of it."""
    for name in groups:
        if name in outputs:
            raise InputError(
                f"groups: {name!r} is a column of predictions, too, and groups would follow them. "
                "To do: name the column of groups"
            )
        if outputs and name == target:
            raise InputError(
                f"groups: {name!r} is the target, too, and each group would have one class. "
                "To do: name the column of groups"
            )


def _labels_of(named: ColumnChoices, target: str | None) -> list[str]:
    """Return the named columns of labels; refuse them with predictions, which have a target."""
    labels = _as_list(named.get("labels"))
    choices = {"target": target, **named}
    predicted = ("target", "pred", "score", "answer", "model", "queries")
    other = next((name for name in predicted if choices.get(name) not in (None, "", [], ())), None)
    if labels and other is not None:
        raise ConfigError(
            f"--labels and --{other}: labels are of a data set without predictions. To do: leave "
            "--labels out, or name the column of labels with --target",
            key="labels",
        )
    return labels


def _outputs(named: ColumnChoices) -> list[str]:
    columns = (named.get("pred"), named.get("score"), named.get("answer"))
    return [name for names in columns for name in _as_list(names)]


_OPTIONS = {"prediction": "--pred", "score": "--score", "answer": "--answer"}
"""Option of `equipoise quick` for each key of a model."""


def _options(form: TableForm, sections: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the options that name columns which were guessed."""
    named = dict[str, dict[str, None]]()
    for section in sections.values():
        for key, option in _OPTIONS.items():
            if key in section:
                named.setdefault(option, {})[section[key]] = None
    target = [] if form.target is None or "count" in form.steps else ["--target", form.target]
    columns = [part for option, names in named.items() for part in (option, ",".join(names))]
    if "count" in form.steps:
        columns = []
    if form.labels and not sections:
        columns = ["--labels", ",".join(form.labels)]
    return (*target, "--groups", ",".join(dict.fromkeys(form.groups)), *columns)


_OF_KINDS: Mapping[str, Sequence[str]] = {
    "answers": ("pred", "score", "threshold", "positive", "model", "images", "queries"),
    "retrieval": ("pred", "score", "threshold", "positive"),
}
"""Choices that don't go with answers, and with queries."""


def _kind_of(named: ColumnChoices, target: str | None) -> str:
    """Return "answers" or "retrieval" if the choices name it, else "".

    Raises
    ------
    ConfigError
        When choices contradict each other.
    """
    has_queries = named.get("queries") is not None
    if not (named.get("answer") or has_queries):
        return ""
    kind, key = ("answers", "answer") if named.get("answer") else ("retrieval", "queries")
    for name in _OF_KINDS[kind]:
        if named.get(name) not in (None, "", [], ()):
            raise ConfigError(
                f"--{name} and --{key}: expected one of them. To do: leave --{name} out",
                key=name,
            )
    if kind == "retrieval":
        if target is not None:
            raise ConfigError(
                "--target and --queries: rankings have no labels. To do: leave --target out",
                key="target",
            )
        if not named.get("model"):
            raise _needless("queries", "model")
    return kind


_LISTED = "query"
"""Column of a list of queries without a header."""
_QUERY = re.compile(r"(.*[_ .-])?(query|prompt|text|caption)", re.IGNORECASE)


def _models_of_kind(kind: str, roles: RowRoles, named: ColumnChoices) -> "_Models":
    """Return the models that answer, or that rank images for queries."""
    if kind == "answers":
        answers = _as_list(named.get("answer"))
        sections, where = _of_each_model({name: {"answer": name} for name in answers}, roles)
        return _Models(sections, where, kind, None, [f"answers: {listed(answers)}"])
    table = named.get("queries")
    assert table is not None  # noqa: S101 - the kind says so
    is_list = isinstance(table, str | os.PathLike) and Path(table).suffix.lower() in LISTS
    source = TableRecipe(table, header=(_LISTED,)) if is_list else table
    names = open_table(source, role="queries").names
    column = next(filter(_QUERY.fullmatch, names), names[0])
    queries = {"table": table, "id": column, **({"header": [_LISTED]} if is_list else {})}
    models = _live_models(named.get("model"))
    sections = {name: {"model": model} for name, model in models.items()}
    return _Models(sections, {}, kind, None, [f"queries: column {column}"], queries)


def _data_section(
    form: TableForm, bands: Container[str], models: "_Models", unit: str | None
) -> dict[str, Any]:
    """Return target, groups and unit as a config has them."""
    compared = {name: f"{name} band" if name in bands else name for name in form.groups}
    crossed = [compared[name] for name in form.groups if name not in form.alone]
    groups = [*compared.values(), *([*pair] for pair in combinations(crossed, 2))]
    labels = (
        {"labels": [name for name in form.labels if name != unit]}
        if models.kind == "dataset"
        else {}
    )
    optional = {"positive": models.positive, "unit": unit}
    return {
        **({"target": form.target} if form.target is not None else {}),
        "groups": groups,
        **labels,
        **{key: value for key, value in optional.items() if value is not None},
    }


@dataclass(frozen=True)
class _Models:
    """Sections of models, the rows with the labels, and the kind of audit."""

    sections: Mapping[str, Mapping[str, Any]]
    where: Mapping[str, Any]
    kind: str
    positive: str | None = None
    notes: Sequence[str] = ()
    queries: Mapping[str, Any] = field(default_factory=dict)


def _models_of_target(
    columns: Mapping[str, pl.Series],
    target: str,
    file: str,
    other_names: Sequence[str],
    roles: RowRoles,
    named: ColumnChoices,
) -> _Models:
    """Return the models that predict a target: classes, or numbers."""
    positive = named.get("positive") or _guess_positive(columns[target])
    classes = _classes(columns[target])
    if positive is not None and len(classes) == 2 and positive not in classes:
        near = nearest(positive, classes)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ConfigError(
            f"positive: given {positive!r}; expected {classes[0]!r} or {classes[1]!r}{hint}",
            key="positive",
        )
    likely = [] if named.get("model") else likely_outputs(other_names)
    quantities = _predicted_quantities(columns, target, _outputs(named) or likely)
    sections, notes = _sections_of_numbers(target, quantities)
    if not quantities:
        sections, notes = _guess_models(columns, target, positive, file, other_names, named)
    _check_choices(named, sections, of_numbers=bool(quantities))
    sections, where = _of_each_model(sections, roles)
    return _Models(sections, where, "regression" if quantities else "predictions", positive, notes)


def _check_choices(
    named: ColumnChoices, models: Mapping[str, Mapping[str, Any]], *, of_numbers: bool
) -> None:
    """Refuse choices of a user without effect on the audit.

    Raises
    ------
    ConfigError
        With the name as its key.
    """
    scored = any("score" in section for section in models.values())
    takes = {
        "threshold": (scored, "score"),
        "positive": (not of_numbers, "a target of two classes"),
        "model": (not of_numbers, "a target of classes"),
    }
    for name, (applies, partner) in takes.items():
        if not applies and named.get(name) not in (None, "", [], ()):
            raise _needless(name, partner)


def _needless(name: str, partner: str) -> ConfigError:
    """Return the error about a choice that goes with another, which is missing."""
    option = f" (--{partner})" if partner in ColumnChoices.__annotations__ else ""
    fix = f"add it, or leave {name} out"
    return ConfigError(
        f"{name}: goes with {partner}{option}, and there is none. To do: {fix}",
        key=name, expected=partner,
    )  # fmt: skip


def _rules_of_bands(bands: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    return [
        {"rule": "band_groups", "attribute": f"{name} band", "column": name, "bounds": bounds}
        | {"names": _band_names(bounds)}
        for name, bounds in bands.items()
    ]


def _predicted_quantities(
    columns: Mapping[str, pl.Series], target: str, outputs: Sequence[str]
) -> list[str]:
    """Return the columns of predicted numbers, where the target is a number and no class."""
    truth = Coded.of(_mostly_numbers(columns[target]))
    numeric = [
        name for name in outputs if is_quantity(truth, Coded.of(_mostly_numbers(columns[name])))
    ]
    return numeric if len(numeric) == len(outputs) else []


def _mostly_numbers(column: pl.Series) -> pl.Series:
    """Return a column without its texts, where nearly all cells are numbers."""
    numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    texts = numbers.null_count() - column.null_count()
    few = 0 < texts <= _FEW_TEXTS * len(column)
    return column.set(numbers.is_null(), None) if few else column


def _sections_of_numbers(
    target: str, predicted: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the section of each model of predicted numbers, and notes on the guesses."""
    notes = [f"{target}: a number, whose errors are compared", f"predictions: {listed(predicted)}"]
    return {name: {"prediction": name} for name in predicted}, notes if predicted else []


def _of_each_model(
    sections: Mapping[str, Mapping[str, Any]], roles: RowRoles
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the sections of every model of the rows, and the rows with the labels."""
    if roles.model is None:
        return {name: {**section} for name, section in sections.items()}, {}
    models = {
        model if len(sections) == 1 else f"{model}, {name}": {
            **section, "where": {roles.model: model}
        }
        for model in roles.models
        for name, section in sections.items()
    }  # fmt: skip
    return models, {"where": {roles.model: roles.models[0]}}


def audit(  # noqa: PLR0913 - one keyword for each choice
    data: TableSource | ConfigSource | None = None,
    *,
    kind: str | None = None,
    target: str | None = None,
    groups: Sequence[str | Sequence[str]] | None = None,
    pred: str | Sequence[str] | None = None,
    score: str | Sequence[str] | None = None,
    threshold: float | str | None = None,
    model: str | Predictor | Model | Mapping[str, Predictor | Model] | None = None,
    images: str | os.PathLike[str] | None = None,
    features: Sequence[str] | None = None,
    positive: str | None = None,
    id: str | None = None,  # noqa: A002 - the name of the key
    unit: str | None = None,
    **settings: Setting,
) -> Result:
    """Audit a config, data of any kind of audit, or the predictions in a table.

    A config is the path of a YAML file, or a mapping that says `audit`. With `kind`, all keywords
    are keys of its config, wherever they stand in it: in the section `data`, in `data.images`, or
    beside them. Without either, the predictions in a table, or of a fitted model, are audited as
    `equipoise quick` does, and what isn't named is guessed.

    Parameters
    ----------
    data : path, data frame or mapping
        A config. With `kind`, a folder of images, a table, or the section `data`. Else a table
        with one row per image: its label, predictions and groups.
    kind : str, optional
        Kind of audit, such as "dataset" or "retrieval".
    target : str, optional
        Column of labels.
    groups : str or sequence of str, optional
        Columns of group attributes. In a table of predictions each is compared, and the
        intersections of each two.
    pred : str or sequence of str, optional
        Columns of predicted labels, a model each; numbers are taken for scores. Guessed from names
        such as `pred` and `score` where neither these nor a model is given.
    score : str or sequence of str, optional
        Columns of scores of the positive class, a model each.
    threshold : float or str, optional
        Scores from it on count as positive; or the rule that chooses it: `balanced_accuracy`
        unless given, `prevalence` or `cost`.
    model : str, model, estimator, or mapping of names to them, optional
        A model to run on `images`: its name, one of `equipoise.models.protocols`, or a module of
        torch that has `classes`. Or fitted estimators of scikit-learn, or others with `predict`,
        which predict the rows of a data frame. A mapping audits several models.
    images : path, optional
        Folder of the images, whose files a column of the table names.
    features : sequence of str, optional
        Columns that `model` takes; those that it was fitted on unless given.
    positive : str, optional
        Of two classes the one whose rates are reported; guessed where it is written as 1, true,
        yes or positive and the other isn't, else both.
    id, unit : str, optional
        Columns that name the image, and what repeats; guessed from names and values. A unit of ""
        is none: rows are independent.
    **settings
        With `kind`, further keys of its config. Without it, `answer` names columns of answers,
        `queries` a table of queries, and `missing` texts that mean a missing value.

    Returns
    -------
    Result
        It shows itself in notebooks; its manifest has the config, and each guess among its notes.
        `equipoise.report.write` writes a report.

    Raises
    ------
    EquipoiseError
        When the table can't be read or audited.

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> people = pl.DataFrame({
    ...     "gender": ["women", "men"] * 100,
    ...     "label": [1, 1, 0, 0] * 50,
    ...     "pred": [1, 1, 0, 0] * 30 + [0, 1, 0, 0] * 20,
    ... })
    >>> equipoise.audit(people, target="label", pred="pred", groups="gender").plot()
    <Plot: True positive rate for “1” by gender, 2 values>
    """
    arguments: dict[str, Setting] = {
        "target": target, "groups": groups, "pred": pred, "score": score, "threshold": threshold,
        "model": _as_models(model), "images": images, "features": features, "positive": positive,
        "id": id, "unit": unit,
    }  # fmt: skip
    arguments = {name: value for name, value in arguments.items() if value is not None} | settings
    if kind is not None:
        _check_keys(kind, arguments)
        return run(parse_config(config_of(kind, data, arguments)))
    if is_config(data):
        if arguments:
            named = ", ".join(arguments)
            raise InputError(f"{named}: a config is given, too. To do: write it there")
        config, base = read_config(data)
        return run(config, base=base)
    if data is None or isinstance(data, Mapping):
        raise InputError("data: expected a table, a config, or the kind of audit with its sections")
    with _arguments_named():
        values, notes = _guessed(data, arguments)
    result = run(parse_config(values))
    guesses = (f"guessed from the table: {note}" for note in notes)
    manifest = replace(result.manifest, notes=(*guesses, *result.manifest.notes))
    return replace(result, manifest=manifest)


@contextmanager
def _arguments_named() -> Iterator[None]:
    """Name the arguments of `audit` in errors in place of the options of `equipoise quick`."""
    try:
        yield
    except EquipoiseError as error:
        # A command to paste keeps its options.
        if "equipoise quick " not in str(error):
            error.args = (_OPTION.sub(r"\1=", str(error)),)
            for name, value in [*vars(error).items()]:
                if isinstance(value, str):
                    setattr(error, name, _OPTION.sub(r"\1=", value))
        raise


def _check_keys(kind: str, arguments: Mapping[str, Setting]) -> None:
    """Refuse arguments of a table of predictions, which a kind of audit doesn't have.

    Raises
    ------
    InputError
        With the arguments, and the keys to use in their place.
    """
    unknown = [name for name in _OF_TABLES if name in arguments and not has_key(kind, name)]
    if unknown:
        raise InputError(
            f"{', '.join(unknown)}: expected without a kind of audit, for the predictions in a "
            "table. To do: leave kind out, with target, groups and pred or score; or name the "
            "models with their columns: models={'m': {'table': table, 'prediction': …}}"
        )


def _guessed(table: TableSource, arguments: dict[str, Setting]) -> tuple[Fields, Strings]:
    """Return the config of the predictions in a table, or of models of it, and each guess."""
    if unknown := sorted({*arguments} - _NAMED):
        keys = "=…, ".join(unknown)
        raise InputError(
            f"{', '.join(unknown)}: expected with a kind of audit, as keys of a config. "
            "To do: name it, and the models with their columns: "
            "audit(table, kind='predictions', id=…, target=…, "
            f"groups=[…], models={{'m': {{'table': table, 'prediction': …}}}}, {keys}=…)"
        )
    needed = ("groups",) if {"answer", "queries"} & {*arguments} else ("target", "groups")
    if missing := [name for name in needed if name not in arguments]:
        raise InputError(
            f"{' and '.join(missing)}: expected with a table. To do: name the columns, or a "
            "config, or the kind of audit"
        )
    model, features = arguments.pop("model", None), arguments.pop("features", None)
    arguments["groups"] = _as_list(arguments["groups"])
    if model is not None and not _is_run(model):
        if "pred" in arguments:
            raise InputError("expected pred, the columns of predictions, or model, not both")
        models = model if isinstance(model, Mapping) else {type(model).__name__: model}
        table = _with_predictions(table, models, features)
        arguments["pred"] = [*models]
        features = None
    elif model is not None:
        arguments["model"] = model
    if features is not None:
        raise _needless("features", "a model that predicts rows")
    guess = guess_config(table, **arguments)
    return guess.config(table), guess.notes


def _is_run(model: Any) -> bool:
    """Whether a model is run on images, by its name or loaded, or several by name are."""
    if isinstance(model, Mapping):
        return bool(model) and all(map(_is_run, model.values()))
    return isinstance(model, str) or offer_of(model) is not None


def _live_models(
    models: str | Sequence[str] | Mapping[str, Model] | Model | None,
) -> Mapping[str, str | Model]:
    """Return models to run by their names, which are written or of loaded models."""
    if isinstance(models, Mapping):
        return models
    if models is None or isinstance(models, str | Sequence):
        return {name: name for name in _as_list(models)}
    return {called(models): models}


def _as_models(model: Any) -> Any:
    """Return a model, or several by name, with modules of torch as classifiers.

    Raises
    ------
    InputError
        When it is a class in place of an instance.
    """
    if isinstance(model, Mapping):
        return {name: _as_models(module) for name, module in model.items()}
    if isinstance(model, type):
        name = model.__name__
        raise InputError(f"model: {name} is a class. To do: pass an instance, such as {name}()")
    return as_model(model)


def _with_predictions(
    table: Any, models: Mapping[str, Predictor], features: Sequence[str] | None
) -> IntoDataFrame:
    """Return a data frame with a column of predictions for each model."""
    frame: nw.DataFrame[IntoDataFrame] = nw.from_native(table, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise InputError("table: expected a data frame, whose rows the model predicts")
    for name, model in models.items():
        names = features if features is not None else getattr(model, "feature_names_in_", None)
        if names is None:
            raise InputError(f"features: expected the columns that {name} takes, in their order")
        check_columns(frame.columns, [*names], "data")
        predictions = np.asarray(model.predict(frame.select(*names).to_native())).tolist()
        column = nw.new_series(name, predictions, backend=frame.implementation)
        frame = frame.with_columns(column)
    return frame.to_native()


def likely_outputs(names: Iterable[str]) -> list[str]:
    """Return columns that are called as predictions and scores are."""
    return [name for name in names if OUTPUT.fullmatch(name)]


def _as_list(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else [*(names or ())]


def _guess_models(
    columns: Mapping[str, pl.Series],
    target: str,
    positive: str | None,
    file: str,
    other_names: Sequence[str],
    named: ColumnChoices,
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the section of each model, and notes on the guesses."""
    labels, scores = _as_list(named.get("pred")), _as_list(named.get("score"))
    notes, models = list[str](), dict[str, dict[str, Any]]()
    run = _live_models(named.get("model"))
    if not (labels or scores or run):
        labels = likely_outputs(other_names)
        notes.append(f"predictions: {listed(labels)}")
    truth = columns[target]
    for name in (*labels, *scores):
        _check_numbers(columns[name], file)
        check_predicted(Coded.of(truth), Coded.of(columns[name]), target, file)
    for name in labels:
        if _is_score(columns[name], truth):
            scores.append(name)
            continue
        models[name] = {"prediction": name}
        words = _map_labels(columns[name], truth, positive)
        _check_labels(columns[name], truth, words, file)
        if words:
            models[name]["map"] = words
            notes.append(f"{name}: " + ", ".join(f"{a} means {b}" for a, b in words.items()))
    for name in scores:
        if positive is None:
            raise DataError(
                f"{name} is a score, and of the classes {listed(_classes(truth), 3)} none is known "
                "to be positive",
                file=file,
                column=target,
                expected="two classes, such as 1 and 0 or yes and no",
                fix="name the positive one (--positive), or a column of predicted labels (--pred)",
            )
        requested = named.get("threshold")
        threshold = "balanced_accuracy" if requested is None else _threshold(requested)
        models[name] = {"score": name, "threshold": threshold}
        notes.append(f"{name}: a score; threshold: {threshold}")
    for name, model in run.items():
        models[name] = _section_of_live_model(model, truth, file)
        words = models[name].get("vocabulary", ())
        notes += [f"{name}: chooses between {listed(words)}"] if words else []
    return models, notes


def _threshold(requested: float | str) -> float | str | dict[str, float]:
    """Return a threshold as a config has it, a rule of one number as its name and this."""
    rules = get_args(ThresholdRule)
    name, written, value = str(requested).partition("=")
    if not written and (not isinstance(requested, str) or requested in rules):
        return requested
    try:
        rate = float(value)
    except ValueError as error:
        raise ConfigError(
            f"threshold: given {requested!r}; expected a number, {', '.join(rules)}, or fpr= and "
            "a rate such as fpr=0.001",
            key="threshold",
        ) from error
    symbols = {spec.symbol.lower(): key for key, spec in SPECS.items() if spec.symbol}
    return {symbols.get(name.lower(), name): rate}


def _section_of_live_model(named: str | Model, truth: pl.Series, file: str) -> dict[str, Any]:
    """Return the section of a live model, with the classes as vocabulary if needed."""
    name, section = called(named), RunConfig(model=named)
    model = named
    if isinstance(model, str):
        model = open_model(section.located(Path()), section.options(ExtractionConfig()), _STORE)
    offer, classes = offer_of(model), _classes(truth)
    if offer == "classifier":
        return {"model": named}
    if offer == "answerer":
        raise ConfigError(
            f"{name} is {DESCRIPTIONS[offer]}, and needs a question. To do: write a config "
            "with equipoise new, and give the model a question"
        )
    if unclear := [
        class_name
        for class_name in classes
        if class_name.casefold() in _YES | _NO or len(class_name) < 2
    ]:
        raise DataError(
            f"the class {unclear[0]!r} says nothing of a picture",
            file=file,
            column=truth.name,
            expected="classes in words, which a model compares with images",
            fix="write them so, or give the model a vocabulary in a config (equipoise new)",
        )
    return {"model": named, "vocabulary": classes}


def _find_images(
    ids: Sequence[pl.Series], file: str, named: ColumnChoices
) -> tuple[Path | None, dict[str, str]]:
    """Return the folder of the images, and the column that names their files."""
    if not named.get("model"):
        if named.get("images"):
            raise _needless("images", "model")
        return None, {}
    folder = named.get("images")
    if folder is None:
        raise ConfigError("a model is named, and no images. To do: name their folder (--images)")
    root = Path(folder)
    if not root.is_dir():
        raise DataError(
            f"images: there is no folder {root}", fix="correct the folder of the images"
        )
    for column in ids:
        cells = column.drop_nulls().head(_PROBED)
        if any((root / cell).is_file() for cell in cells):
            return root, {"path": column.name}
    names = [cell for column in ids for cell in column.drop_nulls().head(1)]
    missing = f"; for example, there is no file {root / names[0]}" if names else ""
    raise DataError(
        f"no column names files in {root}{missing}",
        file=file,
        expected=f"a column such as image_id or file with their names; there are: "
        f"{listed([column.name for column in ids]) or 'none'}",
        fix="correct the folder or the names, or add the column",
    )


def _read_columns(
    table: TableSource, encoding: str, named: Sequence[str], none: Sequence[str] = ()
) -> tuple[dict[str, pl.Series], list[str], str]:
    """Return named columns and likely ones, texts for missing values, and the file.

    `none` are texts that a user names as missing values.
    """
    opened = open_table(table, role="data", encoding=encoding)
    check_columns(opened.names, named, opened.name)
    forms = (*FORMS, OUTPUT)
    likely = (name for name in opened.names if any(form.fullmatch(name) for form in forms))
    columns = dict.fromkeys([*named, *(name for name in likely if name not in opened.lists)])
    texts = read_table(table, texts=columns, role="data", encoding=encoding).texts
    cells = set[str]()
    for column in texts.values():
        cells.update(column.unique().drop_nulls())
    if unseen := [text for text in none if text not in cells]:
        raise ConfigError(
            f"{opened.name}: no cell holds {listed(unseen)}, which means a missing value. "
            "To do: correct --missing, or leave it out",
            key="missing", file=opened.name,
        )  # fmt: skip
    missing = sorted({*filter(looks_missing, cells), *none})
    texts_of_none = ["", *missing]
    return (
        {n: column.set(column.is_in(texts_of_none), None) for n, column in texts.items()},
        missing,
        opened.name,
    )


def _take_sentinels(columns: dict[str, pl.Series], attribute: str) -> Strings:
    """Empty the cells of an attribute that stand for a missing value, and return their texts."""
    column = columns[attribute]
    texts = sentinels_of(column.drop_nulls().unique().sort().to_list())
    columns[attribute] = column.set(column.is_in([*texts]), None)
    return texts


def encoding_of(table: TableSource) -> str:
    """Return the encoding of a text file: UTF-8 if valid, else the one of Excel."""
    if not isinstance(table, str | os.PathLike) or not Path(table).is_file():
        return "utf-8"
    if Path(table).suffix.lower() in (".parquet", ".pq", XLSX):
        return "utf-8"
    content = Path(table).read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _classes(target: pl.Series) -> list[str]:
    return sorted(target.drop_nulls().unique().to_list())


def _is_score(predicted: pl.Series, target: pl.Series) -> bool:
    """Whether a column holds scores, and no labels: many numbers that are no class."""
    foreign = predicted.filter(~predicted.is_in(target.unique().to_list())).unique().drop_nulls()
    return len(foreign) > _MOST_VALUES and not foreign.cast(pl.Float64, strict=False).null_count()


def _check_numbers(column: pl.Series, file: str) -> None:
    """Refuse a column of many numbers with decimal commas or per cent signs.

    Raises
    ------
    DataError
        With the first of them.
    """
    cells = column.drop_nulls()
    unreadable = cells.filter(cells.cast(pl.Float64, strict=False).is_null())
    if (
        len(unreadable)
        and cells.n_unique() > _MOST_VALUES
        and unreadable.str.contains(f"^{_NUMBER}$").all()
    ):
        raise DataError(
            f"{unreadable[0]!r} has a decimal comma or a per cent sign",
            file=file,
            column=column.name,
            expected="numbers such as 0.53",
            fix="write them with a decimal point, and shares from 0 to 1",
        )


def _check_labels(predicted: pl.Series, target: pl.Series, words: Iterable[str], file: str) -> None:
    """Refuse predicted labels that are no classes and no words for them.

    Raises
    ------
    DataError
        With the first of them, and the options that say what they are.
    """
    classes = _classes(target)
    foreign = [label for label in _classes(predicted) if label not in [*classes, *words]]
    if not foreign:
        return
    numbers = pl.Series(foreign).cast(pl.Float64, strict=False)
    are_scores = len(classes) == 2 and not numbers.has_nulls()
    name = predicted.name
    positive = _guess_positive(target) or classes[-1]
    score = f"name it as a score, with the positive class: --score {name} --positive {positive}"
    similar = [(label, nearest(label, classes)) for label in foreign]
    hints = [f"{label!r} may be {other!r}" for label, other in similar if other][:3]
    fixes = [*([score] if are_scores else hints), "write them as in the target"]
    raise DataError(
        f"{listed(foreign, 3)}: no classes of the target {target.name!r}",
        file=file,
        column=name,
        row=int((predicted == foreign[0]).arg_max() or 0) + 1,
        expected=f"one of {listed(classes, 6)}",
        fix="; or ".join([*fixes, "name other columns (--target, --pred)"])
        + "; or map them in a config (equipoise new)",
    )


def _map_labels(predicted: pl.Series, target: pl.Series, positive: str | None) -> dict[str, str]:
    """Return which class each predicted label means that is no class, where all are known."""
    classes = _classes(target)
    foreign = [label for label in _classes(predicted) if label not in classes]
    class_by_word = {class_name.strip().casefold(): class_name for class_name in classes}
    if positive is not None and len(classes) == 2:
        negative = classes[classes[0] == positive]
        class_by_word = dict.fromkeys(_YES, positive) | dict.fromkeys(_NO, negative) | class_by_word
    # Another file may write the same number as 1 and 1.0.
    numbers = {_as_number(name): name for name in classes}
    resolved = dict[str, str]()
    for label in foreign:
        class_name = numbers.get(_as_number(label)) or class_by_word.get(label.strip().casefold())
        if class_name is None:
            return {}
        resolved[label] = class_name
    return resolved


def _as_number(text: str) -> float | str:
    """Return the number that a text is, else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def _guess_positive(target: pl.Series) -> str | None:
    """Return the positive one of two classes, where their names say which it is."""
    classes = target.drop_nulls().unique().to_list()
    affirmative = [name for name in classes if name.strip().casefold() in _YES]
    return affirmative[0] if len(classes) == 2 and len(affirmative) == 1 else None


def _guess_bounds(column: pl.Series) -> list[int]:
    """Return where the bands of a column of many numbers begin; none for other columns."""
    numbers = column.cast(pl.Float64, strict=False)
    if column.n_unique() <= _MOST_VALUES or numbers.null_count() > column.null_count():
        return []
    if "age" in column.name.lower():
        return [*_AGES]
    quartiles = (numbers.quantile(share, "nearest") for share in (0.25, 0.5, 0.75))
    return sorted({int(value) for value in quartiles if value is not None and value >= 1})


def _band_names(bounds: Sequence[int]) -> list[str]:
    """Return names of bands, for example under 18, 18–29, and 30 and over."""
    between = (f"{start}–{end - 1}" for start, end in pairwise(bounds))
    return [f"under {bounds[0]}", *between, f"{bounds[-1]} and over"]
