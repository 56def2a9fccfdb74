"""The commands `new` and `metrics`."""

from importlib.resources import files
from pathlib import Path

import click

from equipoise.audits.kinds import KINDS
from equipoise.audits.studies import STUDIES
from equipoise.cli.outputs import check_output, write_output
from equipoise.cli.questions import ask, on_terminal
from equipoise.cli.terminal import PATH, json_option, note, say, say_json, say_table, say_values
from equipoise.core import ConfigError


@click.command("new", epilog="Example: equipoise new audit.yaml --audit retrieval")
@click.argument("config", type=PATH, required=False)
@click.option(
    "--audit",
    type=click.Choice(KINDS),
    help="What to audit [default: predictions].",
)
@click.option(
    "--study",
    type=click.Choice([*STUDIES, "list"]),
    help="Start from a published study, with its words in tables beside the configuration; or "
    "list the studies.",
)
@click.option("--data", type=PATH, help="Of a study: the folder that holds its data.")
@json_option
def new_command(
    config: Path | None, audit: str | None, study: str | None, data: Path | None, as_json: bool
) -> None:
    """Write a configuration to start from.

    CONFIG is where it goes, equipoise.yaml unless given. Without any argument on a terminal, the
    command asks what you have and writes a configuration that runs; else a commented one.
    A file that is there is never overwritten.
    """
    if study is not None and audit is not None:
        raise ConfigError("--audit and --study are both given. To do: give one of them")
    if data is not None and study in (None, "list"):
        raise ConfigError("--data is given without a study. To do: name one with --study")
    if study == "list":
        _list_studies(as_json)
        return
    path = config or Path("equipoise.yaml")
    check_output(path)
    if study is not None:
        from equipoise.audits.studies.study import study_files

        written = study_files(study, path, data)
    elif config is None and audit is None and not as_json and on_terminal():
        written = {path: ask(path, template)}
    else:
        written = {path: template(audit or "predictions")}
    for one, text in written.items():
        check_output(one, text=text)
    # The main configuration comes last: while it is missing, a killed command can be repeated.
    for one, text in reversed(written.items()):
        write_output(one, text)
    beside = [one for one in written if one != path]
    configs = [one for one in beside if one.suffix != ".csv"]
    tables = [one for one in beside if one.suffix == ".csv"]
    if as_json:
        more = {name: paths for name, paths in (("configs", configs), ("tables", tables)) if paths}
        say_json({"config": path, **more})
        return
    for one in written:
        say(f"wrote {one}")
    others = " and the configurations beside it" if configs else ""
    note(f"next: edit it{others}, then 'equipoise plan {path}' and 'equipoise audit {path}'")


def _list_studies(as_json: bool) -> None:
    """Say what each study asks and reproduces, what data it needs, and how long it takes."""
    from equipoise.audits.studies.study import read_study

    studies = {name: read_study(name) for name in STUDIES}
    fields = ("question", "source", "reproduces", "data", "licence", "size", "time")
    told = {name: {key: getattr(one, key) for key in fields} for name, one in studies.items()}
    if as_json:
        say_json({"studies": told})
        return
    for name, values in told.items():
        say(name)
        say_values(values)
        say()


def template(audit: str, name: str = "template") -> str:
    """Return the text of the commented template of a kind of audit."""
    return files("equipoise.audits").joinpath(audit, f"{name}.yaml").read_text(encoding="utf-8")


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
    "threshold_reason",
    "reference",
    "errata",
]


@click.command("metrics", epilog="Example: equipoise metrics equalized_odds")
@click.argument("name", required=False)
@json_option
def metrics_command(name: str | None, as_json: bool) -> None:
    """List the metrics, or show the card of NAME.

    A card gives the definition, range, direction of harm, chance level, practical threshold and
    reference.
    """
    from equipoise.audits.config_yaml import nearest
    from equipoise.core import InputError
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
