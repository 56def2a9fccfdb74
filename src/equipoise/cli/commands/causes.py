"""`equipoise causes`: rank what may explain a finding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from equipoise.cli.terminal import PATH, Steps, json_option, say, say_json, say_rows, say_values

if TYPE_CHECKING:
    from equipoise.core import Estimate
    from equipoise.core.types import Json


class Options(TypedDict):
    """Sources of causes; missing paths are None."""

    names: tuple[str, ...]
    table: Path | None
    id: str
    embeddings: str
    ids: Path | None
    clusters: int
    folder: Path | None
    annotations: Path | None
    wordnet: Path | None
    medium: str
    mask: bool
    allow_pickle: bool
    trust_remote_code: bool
    seed: int


@click.command("causes", epilog="Example: equipoise causes runs/first --cause medium --cause size")
@click.argument("run", type=PATH)
@click.option(
    "--finding",
    "metric",
    default="",
    metavar="METRIC",
    help="Metric of the finding [default: the most serious finding].",
)
@click.option("--subject", default="", metavar="NAME", help="Class or concept of the finding.")
@click.option("--model", default="", metavar="NAME", help="Audited model.")
@click.option(
    "--groups", default="", metavar="NAMES", help="Groups of the run, such as 'race × gender'."
)
@click.option(
    "--version",
    default="",
    metavar="NAME",
    help="Version of the finding, in audits with design choices.",
)
@click.option(
    "--group",
    default="",
    metavar="GROUP",
    help="Group to compare with all others [default: the worst group].",
)
@click.option(
    "--cause",
    "names",
    multiple=True,
    metavar="COLUMN",
    help="Column of the images' table, or resolution, brightness, box size, box from the left, "
    "box from the top, objects, people.",
)
@click.option("--table", type=PATH, metavar="FILE", help="Table with more columns, by image.")
@click.option(
    "--id",
    default="image_id",
    show_default=True,
    metavar="COLUMN",
    help="Column of image ids in --table and in --embeddings.",
)
@click.option(
    "--embeddings",
    default="",
    metavar="FILE|MODEL",
    help="Embeddings, or a model: their clusters, and neighbours with other labels, are causes.",
)
@click.option("--ids", type=PATH, metavar="FILE", help="Ids of the embeddings, in their order.")
@click.option(
    "--clusters",
    type=click.IntRange(2, 100),
    default=8,
    show_default=True,
    metavar="N",
    help="Number of clusters.",
)
@click.option(
    "--images",
    "folder",
    type=PATH,
    metavar="DIR",
    help="Folder of images named by their ids [default: as the configuration says].",
)
@click.option(
    "--annotations",
    type=PATH,
    metavar="FILE",
    help="Table of annotator and label by image: disagreement of annotators is a cause.",
)
@click.option(
    "--wordnet",
    type=PATH,
    metavar="DIR",
    help="WordNet folder with index.noun and data.noun, for definitions of classes.",
)
@click.option(
    "--medium",
    default="",
    metavar="MODEL",
    help="Zero-shot model that classifies the medium; human labels correct its shares.",
)
@click.option("--mask", is_flag=True, help="Run the audited model again with each object hidden.")
@click.option(
    "--trust-remote-code", is_flag=True, help="Allow models to run their own Python code."
)
@click.option("--allow-pickle", is_flag=True, help="Allow pickled weights, which can run code.")
@click.option(
    "--concreteness",
    "norms",
    type=PATH,
    metavar="FILE",
    help="Table of Word and Conc.M: correlates concreteness with the disparities.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Random seed.")
@json_option
def causes_command(  # noqa: PLR0913, PLR0917 - click names the options of a finding one by one
    run: Path,
    metric: str,
    subject: str,
    model: str,
    groups: str,
    version: str,
    group: str,
    norms: Path | None,
    as_json: bool,
    **sources: Unpack[Options],
) -> None:
    """Rank what may explain a finding of RUN.

    The command compares a group with all others. For each cause it estimates how much of their
    difference goes away without the cause, with an interval and a chance level. Human labels and
    codes of the images are causes, too. docs/review.md explains the methods.
    """
    from equipoise.review import causes, disparities

    disparity = disparities.find_disparity(
        run, metric=metric, subject=subject, model=model, groups=groups, version=version,
        group=group,
    )  # fmt: skip
    with Steps() as progress:
        candidates = causes.gather(run, disparity, causes.Sources(**sources, progress=progress))
        ranking = causes.rank(disparity, candidates, seed=sources["seed"])
    causes.write_ranking(run, ranking)
    concreteness = None if norms is None else causes.concreteness(run, disparity.finding, norms)
    if as_json:
        extra: dict[str, Json] = {}
        if ranking.candidates.clusters is not None:
            extra["clusters"] = _facts(ranking.candidates.clusters)
        if concreteness is not None:
            extra["concreteness"] = {
                **_facts(concreteness.correlation),
                "ratings": dict(concreteness.ratings),
                "unrated": [*concreteness.unrated],
            }
        say_json({**causes.as_json(ranking), **extra})
        return
    for line in causes.sentences(ranking, concreteness):
        say(line)
    say()
    say_rows(causes.rows(ranking))
    say_values({name: rows for name, rows in ranking.candidates.details.items() if rows})


def _facts(estimate: Estimate) -> dict[str, Json]:
    interval = estimate.interval()
    return {
        "value": estimate.value,
        "low": interval.low,
        "high": interval.high,
        "p_value": estimate.p_value,
        "reason": estimate.reason,
    }
