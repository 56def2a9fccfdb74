"""`equipoise new`: write a configuration to start from."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import click

from equipoise.cli.outputs import check_output, write_outputs
from equipoise.cli.questions import ask, on_terminal
from equipoise.cli.terminal import PATH, cell_text, json_option, note, say, say_json
from equipoise.discovery import KINDS, refused
from equipoise.studies import STUDIES


@click.command("new", epilog="Example: equipoise new audit.yaml --audit retrieval")
@click.argument("config", type=PATH, required=False)
@click.option(
    "--audit",
    type=click.Choice([*KINDS]),
    metavar="KIND",
    help=f"Kind of audit [default: predictions]: {', '.join(KINDS)}.",
)
@click.option(
    "--study",
    type=click.Choice([*STUDIES, "list"]),
    metavar="STUDY",
    help="Start from a published study, with its words in tables; `list` shows all studies.",
)
@click.option("--data", type=PATH, metavar="DIR", help="With --study: folder of the study's data.")
@json_option
def new_command(
    config: Path | None, audit: str | None, study: str | None, data: Path | None, as_json: bool
) -> None:
    """Write a configuration to start from.

    CONFIG is its file, equipoise.yaml by default. An existing file is never overwritten. Without
    arguments on a terminal, the command asks about your data and writes a configuration that
    runs. Otherwise it writes a commented one.
    """
    if study is not None and audit is not None:
        raise click.BadParameter(
            "can't go with --audit. To do: leave one of them out", param_hint="'--study'"
        )
    if data is not None and study in (None, "list"):
        raise click.BadParameter(
            "needs a study. To do: name it with --study", param_hint="'--data'"
        )
    if study == "list":
        _list_studies(as_json)
        return
    path = config or Path("equipoise.yaml")
    check_output(path)
    if study is not None:
        from equipoise.studies.study import study_files

        if data is not None and not data.is_dir():
            raise click.BadParameter(
                f"the folder {data} does not exist. To do: check the path", param_hint="'--data'"
            )
        written = study_files(study, path, data)
    elif config is None and audit is None and not as_json and on_terminal():
        written = {path: ask(path, template)}
    else:
        written = {path: template(audit or "predictions")}
    companions = [file for file in written if file != path]
    # The configuration comes last: until it is there, a killed command can be repeated.
    write_outputs({file: written[file] for file in (*companions, path)})
    configs = [file for file in companions if file.suffix != ".csv"]
    tables = [file for file in companions if file.suffix == ".csv"]
    if as_json:
        more = {name: paths for name, paths in (("configs", configs), ("tables", tables)) if paths}
        say_json({"config": path, **more})
        return
    for file in written:
        say(f"wrote {file}")
    addition = " and the other configurations" if configs else ""
    steps = [*_steps_before(written, path), *_next_steps(written[path], path)]
    commands = " and ".join(f"'equipoise {step}'" for step in steps)
    note(f"next: edit it{addition}, then {commands}")


def _steps_before(written: Mapping[Path, str], path: Path) -> list[str]:
    """Return commands that write the input of a configuration."""
    import yaml

    steps = []
    for file, text in written.items():
        values = yaml.safe_load(text) if file != path and file.suffix == path.suffix else None
        output = values.get("output") if isinstance(values, dict) else None
        if output and f"{output}/" in written[path]:
            steps += _next_steps(text, file)
    return steps


def _next_steps(text: str, path: Path) -> list[str]:
    """Return the commands that plan and run a configuration."""
    import yaml

    from equipoise.studies.study import command_of

    command, _ = command_of(yaml.safe_load(text))
    if command == "audit":
        return [f"plan {path}", f"audit {path}"]
    plan = [f"{command} {path} --plan"] if command in _WITH_PLAN else []
    return [*plan, f"{command} {path}"]


NO_PRINTED_NUMBERS = "the protocol; equipoise has no printed numbers of the source"
_WITH_PLAN = ("augment", "mitigate")
"""Commands with an option `--plan`."""


def _list_studies(as_json: bool) -> None:
    """Print a line for each study, and below it source, data and duration."""
    from equipoise.core import PluginError
    from equipoise.studies.study import read_study

    fields = ("question", "source", "reproduces", "data", "licence", "size", "time")
    summaries = {}
    for name in STUDIES:
        try:
            study = read_study(name)
        except PluginError as error:
            note(f"left out: {error}")
            continue
        summaries[name] = {key: getattr(study, key) for key in fields}
        summaries[name]["configurations"] = [*study.configs]
    if as_json:
        say_json({"studies": summaries})
        return
    for name, values in summaries.items():
        say(f"{name}: {values.pop('question')}")
        for key, value in values.items():
            text = cell_text(value)
            if key == "reproduces" and not value:
                text = NO_PRINTED_NUMBERS
            say(f"  {key}: {text}")


def template(audit: str) -> str:
    """Return the text of the commented template of a kind of audit.

    Raises
    ------
    PluginError
        When a plugin's kind has none.
    """
    place = KINDS[audit]
    file = files(place.load(ModuleType)).joinpath("template.yaml")
    if not file.is_file():
        fix = f"write a configuration as the documentation of {place.package} says"
        raise refused(f"{place} has no {file.name}", fix, place)
    return file.read_text(encoding="utf-8")
