"""Details of every study, which the build adds to docs/studies.md.

python -m tools.studies
python -m tools.studies --missing FOLDER

The first prints them as Markdown. The second lists tables whose printed numbers the package lacks.

FOLDER has a folder of JSON files for each published work, a file for each table that was collected.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from equipoise.report import text as formatted
from equipoise.studies import STUDIES
from equipoise.studies.page import chance_range, chance_words
from equipoise.studies.study import Study, command_of, config_path, read_study
from equipoise.studies.works import WORKS, PrintedTable, Work, read_work

MAIN = Path("study.yaml")
PROTOCOLS = "Numbers of fair models"
DATA = "Data of each study"
_ABOUT = (
    "Simulated for the sizes of each protocol: 3,000 runs with seed 0, unless the report states "
    "another number. Compare printed numbers with them. A run that averages several answers to a "
    "picture has less chance, which its report states."
)
_BEFORE = {"train": 0, "augment": 0, "generation": 1}
"""Configurations whose runs make what the main one reads."""


def studies_of(work: str) -> dict[str, Study]:
    """Return the studies of a published work by name."""
    studies = {name: read_study(name) for name in STUDIES}
    return {name: study for name, study in studies.items() if study.published == work}


def shown_cells(table: PrintedTable, number: str, study: Study) -> set[tuple[str, str]]:
    """Return the cells of a printed table beside which a study shows numbers."""
    return {
        (row, column)
        for shown in study.tables
        if shown.of == number
        for row in shown.rows
        for column in shown.columns
        if table.cell(row, column) is not None
    }


def printed_cells(table: PrintedTable) -> int:
    """Return how many cells of a table have something printed."""
    return sum(cell is not None for row in table.rows.values() for cell in row)


def details() -> str:
    """Return the protocols and every study, by published work, as Markdown."""
    works = ["\n\n".join(_work(name)) for name in WORKS]
    return "\n\n".join([_data(), _protocols(), *works])


def _data() -> str:
    """Return the section of the data of every study: a row for each."""
    rows = ["| study | data | size | download or generation | printed numbers |", "|" + "---|" * 5]
    for name in STUDIES:
        study = read_study(name)
        needs_data = any("${data}" in body for body in study.configs.values())
        in_repository = "examples/" in study.data
        download = "yes" if needs_data and not in_repository else "no"
        printed = "yes" if study.reproduces else "no: equipoise has only the protocol"
        rows.append(f"| {name} | {study.data} | {study.size} | {download} | {printed} |")
    return "\n\n".join([f"### {DATA}", "\n".join(rows)])


def _protocols() -> str:
    """Return the section of studies with a chance level: a row for each number."""
    rows = ["| protocol | command | number | mean of fair models | 95 of 100 | in words |"]
    rows.append("|" + "---|" * 6)
    for name in STUDIES:
        study = read_study(name)
        command = f"`{next(_commands(name, study))}`"
        for place, entry in enumerate(study.chance):
            first = [study.work.title, command] if place == 0 else ["", ""]
            numbers = (
                formatted.number(entry.result.mean),
                chance_range(entry.result),
                chance_words(entry),
            )
            rows.append(f"| {' | '.join([*first, entry.number, *numbers])} |")
    return "\n\n".join([f"### {PROTOCOLS}", _ABOUT, "\n".join(rows)])


def _work(name: str) -> Iterator[str]:
    work, studies = read_work(name), studies_of(name)
    yield f"### {work.title}"
    yield f"{work.source}."
    for study_name, study in studies.items():
        yield from _study(study_name, study)
    unrepeated = [*_unrepeated(work, studies)]
    if unrepeated:
        yield "Not repeated:"
        yield "\n".join(["| in the source | why |", "|---|---|", *unrepeated])


def _study(name: str, study: Study) -> Iterator[str]:
    yield f"#### {name}"
    yield study.question
    yield "\n".join(["```sh", *_commands(name, study), "```"])
    yield f"Data: {study.data}. Licence: {study.licence}. Size: {study.size}. Time: {study.time}."
    if study.guide:
        yield study.guide.replace("\n", "\n\n")
    rows = [*_tables(study), *_claims(study)]
    if rows:
        yield "\n".join(["| in the source | in the report |", "|---|---|", *rows])


def _commands(name: str, study: Study) -> Iterator[str]:
    """Yield the commands of a study, those that make data for others first."""
    data = " --data FOLDER" if any("${data}" in body for body in study.configs.values()) else ""
    yield f"equipoise new {MAIN} --study {name}{data}"
    configs = dict(zip(study.configs, study.parsed_configs, strict=True))
    commands = {part: command_of(config)[0] for part, config in configs.items()}

    def order(part: str) -> int:
        kind = commands[part] if commands[part] != "audit" else configs[part].get("audit")
        return _BEFORE.get(str(kind), 2)

    for part in sorted(configs, key=order):
        yield f"equipoise {commands[part]} {config_path(study, part, MAIN)}"


def _tables(study: Study) -> Iterator[str]:
    """Yield a row for each table of the source that the report shows."""
    for number in study.reproduces:
        printed = study.work.tables[number]
        total = printed_cells(printed)
        shown = len(shown_cells(printed, number, study))
        beside = f"this run beside {shown} of {total} printed cells" if total else "this run alone"
        yield f"| {number}: {printed.title} | {beside} |"
    for table in study.tables:
        if table.of is None:
            yield f"| – | {table.title} |"


def _claims(study: Study) -> Iterator[str]:
    for claim in study.claims:
        part = f", {claim.part}" if claim.part else ""
        text = "judged" if claim.holds else "can't tell"
        why = f": {claim.why.rstrip('.')}" if claim.why else ""
        yield f"| {claim.of}{part}: {study.work.claims[claim.of].claim} | {text}{why} |"


def _unrepeated(work: Work, studies: Mapping[str, Study]) -> Iterator[str]:
    """Yield a row for each table and claim of a work that no study repeats."""
    reasons = {number: why for study in studies.values() for number, why in study.left_out.items()}
    shown = {number for study in studies.values() for number in study.reproduces}
    for number, table in work.tables.items():
        if number not in shown:
            words = f'`lexicon("{table.words}")` has its words' if table.words else ""
            why = reasons.get(number) or words or "no configuration measures it"
            yield f"| {number}: {table.title} | {why} |"
    judged = {claim.of for study in studies.values() for claim in study.claims}
    for key, claim in work.claims.items():
        if key not in judged:
            yield f"| {key} ({claim.where}): {claim.claim} | no configuration judges it |"


def missing(folder: Path) -> Iterator[str]:
    """Yield what was collected of published works and no report of a study prints."""
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield f"{place.name}:"
        work = read_work(place.name)
        studies = studies_of(place.name)
        paths = sorted(place.glob("*.json"))
        yield from (f"  {path.stem}: not packaged" for path in paths if not _packaged(path, work))
        yield from _missing_tables(work, studies)
        if place / "claims.json" in paths:
            claims = json.loads((place / "claims.json").read_text(encoding="utf-8"))["claims"]
            judged = {claim.of for study in studies.values() for claim in study.claims}
            for claim in claims:
                if claim["id"] not in judged:
                    yield f"  {claim['id']} ({claim['where']}): no study judges the claim"


def _packaged(path: Path, work: Work) -> bool:
    """Return whether a work has the tables of a file, or the numbers of text for a file of text."""
    match = re.search(r"(table|figure|section)s?_(.*)", path.stem)
    if match is None:
        collected = json.loads(path.read_text(encoding="utf-8"))
        number = collected.get("table") if isinstance(collected, dict) else None
        if number is not None:
            return f"Table {number}" in work.tables
        return path.stem == "claims" or any(name.startswith("Section") for name in work.tables)
    # Numbers have a chapter in some works: figures_4_3_4_5 are figures 4.3 and 4.5.
    numbers = [
        ".".join(digits.lstrip("0") for digits in number.split("_"))
        for number in re.findall(r"\d+(?:_\d+)?", match[2])
    ]
    names = [name.partition(",")[0] for name in work.tables]
    return {f"{match[1].capitalize()} {number}" for number in numbers} <= {*names}


def _missing_tables(work: Work, studies: Mapping[str, Study]) -> Iterator[str]:
    """Yield a line for each packaged table that no report of a study shows."""
    shown = {number for study in studies.values() for number in study.reproduces}
    explained = {number for study in studies.values() for number in study.left_out}
    for number, table in work.tables.items():
        if number not in shown | explained and not table.words:
            yield f"  {number}: no study shows it or says why"


def main() -> None:
    """Print the details, or missing tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--missing", type=Path, metavar="FOLDER")
    folder = parser.parse_args().missing
    text = details() if folder is None else "\n".join(missing(folder))
    print(text)  # noqa: T201 - it is a command


if __name__ == "__main__":
    main()
