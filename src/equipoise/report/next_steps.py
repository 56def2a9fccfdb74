"""What to do next, computed from a run: commands that can be pasted, and advice beside them."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from shlex import join

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.core.sentences import named
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import Page, Step
from equipoise.report.text import listed
from equipoise.report.words import compares, contrast, models_of

MOST_CAUSES = 2
REVIEW_PACKAGES = ("starlette", "uvicorn", "PIL")
"""What the extra of `equipoise review` installs."""
INSTALL_REVIEW = "pip install '.[review]'"


@dataclass(frozen=True)
class Place:
    """Where a run lies, for the commands that read it.

    Attributes
    ----------
    run : str
        Its path as the user wrote it.
    examples : bool
        Whether it has the images behind its findings.
    """

    run: str
    examples: bool


def next_steps(result: AuditResult, page: Page, place: Place, finding: Finding) -> tuple[Step, ...]:
    """Return the commands that look further into a finding of a run, in the order of their use.

    Parameters
    ----------
    result : AuditResult
    page : Page
        Names the commands that its kind of audit has.
    place : Place
    finding : Finding
        The one that leads.
    """
    return (
        *_review(page, place, finding),
        *_causes(result, page, place, finding),
        *_compare(result, page, place),
        *_mitigate(result, page),
        *_check(result, place),
    )


def look(page: Page, finding: Finding) -> str:
    """Say which images to look at for a finding."""
    return (page.look or Page.look).format(**fields_of(finding))


def _review(page: Page, place: Place, finding: Finding) -> Iterator[Step]:
    """Yield the page of images, and before it the packages that it lacks."""
    if not place.examples:
        return
    if not all(map(find_spec, REVIEW_PACKAGES)):
        yield Step("Install the page of images in a checkout of equipoise:", INSTALL_REVIEW)
    yield Step(look(page, finding), join(("equipoise", "review", place.run)))


def _causes(result: AuditResult, page: Page, place: Place, finding: Finding) -> Iterator[Step]:
    """Yield a test of each other attribute of the run as a cause."""
    if "causes" not in page.commands or not finding.groups:
        return
    excluded = *finding.attributes, _target(result)
    attributes = [
        name for name in _attributes(result)
        if name not in excluded and not _tells_labels(result.findings, name)
    ]  # fmt: skip
    for attribute in attributes[:MOST_CAUSES]:
        command = ("equipoise", "causes", place.run, "--cause", attribute)
        yield Step(f"Test {attribute} as a cause:", join(command))


def _attributes(result: AuditResult) -> list[str]:
    """Return the columns of people's attributes that a run compares."""
    sizes = result.tables.get("group_sizes")
    if sizes is None or "attributes" not in sizes.column_names:
        return []
    names = (name for row in sizes.column("attributes").to_pylist() for name in row or ())
    return [*dict.fromkeys(names)]


def _target(result: AuditResult) -> str:
    """Return the column of the labels of a run; "" where there is none."""
    data = result.manifest.resolved.get("data")
    return str(data.get("target") or "") if isinstance(data, Mapping) else ""


def _tells_labels(findings: Sequence[Finding], attribute: str) -> bool:
    """Whether an attribute is the label or a model's prediction, which is no cause of anything.

    Where it is the label, shares of labels have no verdict; where it is the prediction, each group
    gets each label always or never.
    """
    by_model: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        spec, values = spec_of_finding(finding), [part.value for part in finding.by_group]
        of_label = spec.of_class and spec.of_base_rates and finding.subject
        if finding.groups == attribute and of_label and values and all(map(math.isfinite, values)):
            by_model[finding.model].append(finding)
    return any(
        all(finding.verdict is Verdict.NONE for finding in shares)
        or all({part.value for part in finding.by_group} == {0.0, 1.0} for finding in shares)
        for shares in by_model.values()
    )


def _compare(result: AuditResult, page: Page, place: Place) -> Iterator[Step]:
    several = len(models_of(result)) > 1 and not compares(result)
    if "compare" in page.commands and several:
        # The folder of each comparison is its own, so that one can follow another.
        out = ("--out", f"{place.run.rstrip('/')}-compared")
        yield Step("Compare the models:", join(("equipoise", "compare", place.run, *out)))


def _check(result: AuditResult, place: Place) -> Iterator[Step]:
    """Yield the check of the gate, whose rules are about models and not their comparison."""
    if result.manifest.resolved.get("gate") and not compares(result):
        yield Step("Check the run against its gate:", join(("equipoise", "check", place.run)))


def _mitigate(result: AuditResult, page: Page) -> Iterator[Step]:
    """Yield how to lower a disparity, which needs a configuration: of models that can be loaded."""
    models = [
        name
        for name, about in result.manifest.models.items()
        if str(about.get("name")).startswith(page.mitigable)
    ]
    if page.mitigable and models:
        text = f"Lower it for {listed(models)} with “equipoise mitigate” and a configuration."
        yield Step(text)


def fields_of(finding: Finding) -> dict[str, str]:
    """Return what a page's advice may name: the group that is worst off, and the subject."""
    group, groups = "the group that is worst off", contrast(finding)
    if groups is not None:
        group = named(groups[0].group)
    return {"group": group, "subject": finding.subject or "each subject"}
