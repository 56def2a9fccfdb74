"""Pages of `equipoise review` on causes: rankings, counts of codes, the form."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode

import polars as pl

from equipoise.core import Fields, Finding, record
from equipoise.evidence import LABELS
from equipoise.evidence.examples import LABELLED
from equipoise.metrics.labels.causes import Cell
from equipoise.review.causes import read_definitions, read_rankings
from equipoise.review.coding import (
    CODES,
    NONE,
    OWN_REMEDY,
    CodeCount,
    answer_of,
    answered,
    codes_in,
    count_codes,
    question_of,
    total_counts,
)
from equipoise.review.disparities import has_subject
from equipoise.review.examples import HIDE, VALUES, Examples
from equipoise.review.labellers import name_problem
from equipoise.review.labels import add_labels, read_labels
from equipoise.review.questions import QUESTIONS, UNSURE
from equipoise.review.requests import parse_whole_number

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MEDIUM = "medium"
# Bytes beyond which it's no answer of the form.
_MOST_BYTES = 20_000
# Images of each value of a cause.
_EXAMPLES = 4


@record
class CausesPages:
    """Pages on causes of a run.

    Attributes
    ----------
    examples : Examples
    findings : sequence of Finding
    codes : tuple of str
        The user's codes, in addition to `CODES`.
    render : callable
        Returns the page of a template.
    refuse : callable
        Returns the response to an invalid request.
    """

    examples: Examples
    findings: Sequence[Finding]
    codes: tuple[str, ...]
    render: Callable[..., Response]
    refuse: Callable[[], Response]

    @cached_property
    def subjects(self) -> list[Finding]:
        """One finding for each class or concept, sorted by name."""
        kind = self.examples.result.manifest.resolved.get("audit")
        findings = self.findings if kind in ("predictions", "concepts") else ()
        with_subject = filter(has_subject, reversed(findings))
        by_subject = {finding.subject: finding for finding in with_subject}
        return [by_subject[name] for name in sorted(by_subject)]

    @cached_property
    def all_codes(self) -> dict[str, str]:
        """Codes of the form with their remedies."""
        return {**CODES, **dict.fromkeys(self.codes, OWN_REMEDY)}

    def show_overview(self, request: Request) -> Response:
        """Show code counts over all classes and concepts, and ranked causes."""
        labels = read_labels(self.examples.run)
        rankings = read_rankings(self.examples.run)
        counts, coded = list[CodeCount](), dict[str, int]()
        for finding in self.subjects:
            subject_counts = self._count_codes(labels, finding)
            counts += subject_counts
            coded[finding.subject] = _count_coded(subject_counts)
        overall = next((finding for finding in self.findings if not finding.subject), None)
        return self.render(
            "causes", subjects=[*coded], coded=coded, totals=total_counts(counts),
            rankings=self._group_rankings(rankings),
            examples=overall and self._find_examples(overall), **_read_hidden(request),
        )  # fmt: skip

    def show_subject(self, request: Request) -> Response:
        """Show the codes and causes of a class or concept."""
        place = request.path_params["place"]
        if place >= len(self.subjects):
            return self.refuse()
        finding = self.subjects[place]
        rankings = read_rankings(self.examples.run)
        if rankings.height:
            rankings = rankings.filter(subject=finding.subject)
        counts = self._count_codes(read_labels(self.examples.run), finding)
        return self.render(
            "cause", subject=finding.subject, place=place, counts=counts,
            rankings=self._group_rankings(rankings), examples=self._find_examples(finding),
            senses=read_definitions(self.examples.run, finding.subject).to_dicts(),
            **_read_hidden(request),
        )  # fmt: skip

    def show_form(self, request: Request) -> Response:
        """Ask for the codes of the next image, or of the one in the address."""
        place, query = request.path_params["place"], request.query_params
        coder = query.get("coder", "").strip()
        if place >= len(self.subjects):
            return self.refuse()
        if coder and (problem := name_problem(coder)):
            return self._refuse_name(place, problem)
        finding = self.subjects[place]
        places, labels = self._find_places(finding), read_labels(self.examples.run)
        coder_labels = labels.filter(question=question_of(finding.subject), labeller=coder)
        answers = dict(coder_labels.select("image_id", "answer").iter_rows())
        names = dict(zip(places, self.examples.image_ids[places], strict=True))
        uncoded = [image for image in places if names[image] not in answers]
        image = next(iter(uncoded), None)
        if chosen_image := query.get("image", ""):
            if chosen_image not in map(str, places):
                return self.refuse()
            image = int(chosen_image)
        given_codes, before = list[str](), None
        if image is not None:
            given_codes = codes_in(answers.get(names[image], NONE))
            if position := places.index(image):
                before = places[position - 1]
        return self.render(
            "code", subject=finding.subject, place=place, coder=coder, image=image,
            codes=self.all_codes, given_codes=given_codes,
            media=[medium for medium in QUESTIONS[MEDIUM].answers if medium != UNSURE],
            coded=len(places) - len(uncoded), n_images=len(places), unsure=UNSURE, before=before,
        )  # fmt: skip

    async def save(self, request: Request) -> Response:
        """Save the codes of an image, and redirect to the next."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import RedirectResponse

        place = request.path_params["place"]
        size = parse_whole_number(request.headers.get("content-length", ""))
        if place >= len(self.subjects) or size is None or not 0 <= size <= _MOST_BYTES:
            return self.refuse()
        try:
            answer = parse_qs((await request.body()).decode(), max_num_fields=200)
        except ValueError:
            return self.refuse()
        coder = answer.get("coder", [""])[0].strip()
        if problem := name_problem(coder):
            return self._refuse_name(place, problem)
        if not await run_in_threadpool(self._store, self.subjects[place], coder, answer):
            return self.refuse()
        address = f"/code/{place}?{urlencode({'coder': coder})}"
        return RedirectResponse(address, HTTPStatus.SEE_OTHER)

    def _store(self, finding: Finding, coder: str, answer: dict[str, list[str]]) -> bool:
        """Write an answer of the form to the disk; return whether it was valid."""
        image, medium = answer.get("image", [""])[0], answer.get(MEDIUM, [""])[0]
        codes = answer.get("code", [])
        choices = {*map(str, self._find_places(finding))}
        valid = image in choices and {*codes} <= {*self.all_codes}
        if not valid or medium not in ("", *QUESTIONS[MEDIUM].answers):
            return False
        name = str(self.examples.image_ids[int(image)])
        chosen = [code for code in self.all_codes if code in codes]
        new = [answered(name, question_of(finding.subject), answer_of(chosen), coder)]
        if medium:
            new.append(answered(name, MEDIUM, medium, coder))
        add_labels(self.examples.run, *new)
        return True

    def _refuse_name(self, place: int, problem: str) -> Response:
        """Show why a name is refused."""
        return self.render(
            "problem", status=HTTPStatus.FORBIDDEN, problem="This name can't be used",
            reason=f"Expected: {problem}.", back=f"/code/{place}",
        )  # fmt: skip

    def _find_places(self, finding: Finding) -> list[int]:
        """Return the images with the label of a finding, in the run's random order."""
        rows = self.examples.rows(finding.model, finding.subject)
        places = rows.filter(pl.col("outcome").is_in(LABELLED))["place"].unique(maintain_order=True)
        order = self.examples.images["order"][places]
        ordered: list[int] = places.gather(order.arg_sort()).to_list()
        return ordered

    def _find_examples(self, finding: Finding) -> dict[tuple[str, str], list[int]]:
        """Return the first images of each value of a cause, in the run's random order."""
        if not (path := self.examples.run / LABELS / VALUES).is_file():
            return {}
        table = pl.read_parquet(path)
        places = pl.DataFrame({"place": self._find_places(finding)}, {"place": pl.UInt32})
        ids = self.examples.image_ids[places["place"]]
        value_table = places.with_columns(image_id=ids).join(
            table, on="image_id", how="left", maintain_order="left"
        )
        examples = dict[tuple[str, str], list[int]]()
        for name in table.drop("image_id").columns:
            first_places = value_table.group_by(name).agg(pl.col("place").head(_EXAMPLES))
            for value, image_places in first_places.iter_rows():
                examples[name, str(value)] = image_places
        return examples

    def _count_codes(self, labels: pl.DataFrame, finding: Finding) -> list[CodeCount]:
        subject_labels = labels.filter(question=question_of(finding.subject))
        if not subject_labels.height:
            return []
        names = self.examples.group_names(finding.groups)
        groups = self.examples.image_ids.to_frame().with_columns(group=names)
        return [*count_codes(labels, finding.subject, groups)]

    def _group_rankings(
        self, rankings: pl.DataFrame
    ) -> list[tuple[str, list[dict[str, Cell]], int | None]]:
        """Return rankings by finding, with each finding's place."""
        by_finding: dict[tuple[str, ...], list[dict[str, Cell]]] = {}
        for row in rankings.to_dicts():
            names = ("model", "metric", "subject", "groups", "shows", "group")
            row["details"] = json.loads(row.get("details") or "[]")
            by_finding.setdefault(tuple(str(row[name]) for name in names), []).append(row)
        places: dict[tuple[str, ...], int] = {}
        for place, finding in enumerate(self.findings):
            facts = finding.model, finding.metric, finding.subject, finding.groups
            places.setdefault(facts, place)
        return [
            (f"{key[0]}: {key[4]}, {key[5]} minus the others", rows, places.get(key[:4]))
            for key, rows in by_finding.items()
        ]


def _count_coded(counts: Sequence[CodeCount]) -> int:
    """Return the number of coded images."""
    return sum({count.group: count.coded for count in counts}.values())


def _read_hidden(request: Request) -> Fields:
    """Return the blurred area of images, and the choices."""
    hide = request.query_params.get("hide", "")
    choices = {name: title for name, title in HIDE.items() if name != "outside"}
    return {"hide": hide if hide in choices else "", "hidden": choices}
