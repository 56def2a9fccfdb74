"""Constructed models: what must lead a report, what must not, and what it warns about."""

from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from equipoise import audits
from equipoise.cli.runs import page_of
from equipoise.core import DataError, Verdict
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.summary import summarize

JOBS = np.array(["cook", "doctor", "nurse"])
DRAWN = {"resampling": {"replicates": 200, "permutations": 2000}}


class Rows(NamedTuple):
    """Groups and true classes of images, and what draws them."""

    group: np.ndarray
    truth: np.ndarray
    rng: np.random.Generator

    def right(self, share):
        """Return classes that are right so often, by image; others are wrong alike."""
        wrong = JOBS[
            (np.searchsorted(JOBS, self.truth) + self.rng.integers(1, 3, len(self.truth))) % 3
        ]
        return np.where(self.rng.random(len(self.truth)) < share, self.truth, wrong)

    def of(self, *groups):
        return np.isin(self.group, groups)


def people(seed=0, chances=None, **sizes):
    rng = np.random.default_rng(seed)
    group = np.repeat([*sizes], [*sizes.values()])
    distributions = [(chances or {}).get(name) for name in group]
    truth = np.array([rng.choice(JOBS, p=p) for p in distributions])
    return Rows(group, truth, rng)


def run(rows, predicted, truth=None, kind="predictions", **model):
    table = pl.DataFrame({
        "id": [f"i{row}" for row in range(len(predicted))], "group": rows.group,
        "truth": rows.truth if truth is None else truth, "said": predicted,
    })  # fmt: skip
    column = "prediction" if kind == "predictions" else "answer"
    return audits.run(audits.parse_config({
        "audit": kind, "models": {"m": {"table": table, column: "said", **model}},
        "data": {"table": table, "id": "id", "groups": ["group"]}
        | ({"target": "truth"} if kind == "predictions" else {}), **DRAWN,
    }))  # fmt: skip


TWO, THREE = {"men": 800, "women": 800}, {"men": 800, "women": 800, "few": 120}


def noisy(accuracy=0.9, **shares):
    """A model with another accuracy in some groups."""
    rows = people(**THREE)
    share = np.full(len(rows.group), accuracy)
    for group, rate in shares.items():
        share[rows.of(group)] = rate
    return run(rows, rows.right(share))


def constant():
    rows = people(**THREE)
    return run(rows, np.full(len(rows.group), "cook"))


def at_random():
    rows = people(**THREE)
    return run(rows, rows.rng.permutation(rows.truth))


def broken_for_women():
    rows = people(**THREE)
    return run(rows, np.where(rows.of("women"), rows.rng.choice(JOBS, len(rows.group)), rows.truth))


def by_prevalence():
    rows = people(chances={"men": (0.6, 0.3, 0.1), "women": (0.2, 0.3, 0.5)}, **TWO)
    return run(rows, rows.right(0.95))


def abstaining(**shares):
    rows = people(**THREE)
    share = sum(rate * rows.of(group) for group, rate in shares.items())
    silent = rows.rng.random(len(rows.group)) < share
    return run(rows, np.where(silent, "unsure", rows.right(0.9)), unknown=["unsure"])


def worded(biased, gendered, kind="predictions"):
    rows = people(**TWO)
    jobs = rows.right(np.where(rows.of("women") & biased, 0.6, 0.9))
    word = np.where(rows.of("women"), "She", "He") if gendered else np.full(len(jobs), "The person")
    texts = [f"{pronoun} is a {job}." for pronoun, job in zip(word, jobs, strict=True)]
    return run(rows, texts, kind=kind, normalize={})


def target_is_group():
    rows = people(**TWO)
    return run(rows, rows.group, truth=rows.group)


def rare_third():
    rows = people(men=2000, women=1900, rare=37)
    return run(rows, rows.right(np.where(rows.of("women"), 0.8, 0.9)))


def few_images():
    rows = people(men=40, women=40, seed=1)
    return run(rows, rows.right(0.85))


def vectors_of(ids, values):
    frame = pl.DataFrame({"id": ids, "v": values.astype(np.float32)})
    return {"file": frame, "id": "id", "column": "v"}


def ranking(*leans):
    """Two images of each of 12 scenes of every subject, and prompts that lean to a group."""
    rng, n_subjects = np.random.default_rng(0), len(leans)
    of = np.repeat(np.arange(n_subjects), 24)
    images = pl.DataFrame({
        "id": [f"i{row}" for row in range(len(of))], "subject": of.astype(str),
        "set": (np.arange(len(of)) // 2).astype(str), "group": ["men", "women"] * (12 * n_subjects),
    })  # fmt: skip
    vectors = 3 * np.eye(n_subjects + 1)[1 + of] + 0.5 * rng.normal(size=(len(of), n_subjects + 1))
    vectors[:, 0] += np.tile([1.0, -1.0], 12 * n_subjects)
    texts = 3 * np.eye(n_subjects + 1)[1:]
    texts[:, 0] = leans
    names = [*map(str, range(n_subjects))]
    queries = pl.DataFrame({"id": names, "subject": names})
    model = {"images": vectors_of(images["id"], vectors), "queries": vectors_of(names, texts)}
    data = {"images": {"table": images, "id": "id"}, "subject": "subject", "sets": "set"}
    return audits.run(audits.parse_config({
        "audit": "retrieval", "data": data | {"groups": ["group"]}, "models": {"m": model},
        "queries": {"table": queries, "id": "id", "subject": "subject"}, **DRAWN,
    }))  # fmt: skip


def associations(lean):
    rng, axis = np.random.default_rng(2), 2 * np.eye(12)[0]
    side = {"men": 1.0, "women": -1.0, "science": lean, "arts": -lean}
    lists = np.repeat([*side], 16)
    names = [f"{name} {place}" for place, name in enumerate(lists)]
    vectors = rng.normal(size=(len(names), 12)) + np.outer([side[name] for name in lists], axis)
    words = pl.DataFrame({"id": names, "list": lists})
    return audits.run(audits.parse_config({
        "audit": "associations", "data": {"words": {"table": words, "id": "id", "kind": "text"}},
        "models": {"m": {"embeddings": {"words": vectors_of(names, vectors)}}},
        "sets": {name: {"words": {"list": name}} for name in side},
        "measure": [{
            "metric": "weat", "targets": ["science", "arts"], "attributes": ["men", "women"],
        }],
        **DRAWN,
    }))  # fmt: skip


SURE, SMALL, OPEN = {Verdict.DISPARITY}, {Verdict.BELOW_THRESHOLD}, {Verdict.INCONCLUSIVE}
FAIR = SMALL | OPEN
PARITY = ("demographic_parity", "selection_rate")
# Of each model: the verdicts that may lead, the group that is worst off, and a warning.
CASES = {
    "perfect": (partial(noisy, 1.0), FAIR, "", ""),
    "right alike for every group": (noisy, FAIR, "", ""),
    "constant": (constant, {Verdict.DISPARITY}, "", "answers “cook” for 100"),
    "random": (at_random, FAIR, "", "by chance"),
    "wrong for a small group": (partial(noisy, few=0.55), SURE, "few", ""),
    "wrong for a large group": (partial(noisy, women=0.75), SURE, "women", ""),
    "broken for a group": (broken_for_women, SURE, "women", "chance for women"),
    "base rates differ": (by_prevalence, FAIR, "", ""),
    "abstains for a group": (partial(abstaining, women=0.3), SURE, "women", ""),
    "abstains for all": (partial(abstaining, men=0.3, women=0.3, few=0.3), FAIR, "", ""),
    "fair, gendered wording": (partial(worded, biased=False, gendered=True), FAIR, "", ""),
    "biased, neutral wording": (partial(worded, biased=True, gendered=False), SURE, "women", ""),
    "biased, gendered wording": (partial(worded, biased=True, gendered=True), SURE, "women", ""),
    "fair answers, gendered": (partial(worded, False, True, "answers"), FAIR, "", ""),
    "the target is the group": (target_is_group, FAIR, "", ""),
    "a rare group beside a difference": (rare_third, SURE, "women", ""),
    "few images": (few_images, OPEN, "", ""),
    "fair ranking": (partial(ranking, *[0.0] * 24), FAIR, "", ""),
    "biased ranking": (partial(ranking, *[0.6] * 24), SURE, "", ""),
    "stereotyped ranking": (partial(ranking, *[0.6, -0.6] * 12), {Verdict.DETECTED} | FAIR, "", ""),
    "fair associations": (partial(associations, 0.0), OPEN, "", ""),
    "biased associations": (partial(associations, 0.6), SURE, "", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_the_expected_finding_leads_a_report(name):
    build, verdicts, group, warning = CASES[name]
    result = build()
    (statement,) = summarize(result, page_of(result).leads).statements
    lead = statement.finding
    assert lead.verdict in verdicts
    if group:
        side = -1 if spec_of_finding(lead).groups_harm == "lower" else 1
        assert max(lead.by_group, key=lambda estimate: side * estimate.value).group == group
        assert lead.metric not in PARITY
    if verdicts == OPEN and lead.metric != "weat":
        assert lead.more > 0
    warnings = result.manifest.warnings
    assert any(warning in text for text in warnings) if warning else not warnings
    if verdicts <= FAIR:
        leading = [finding for finding in result.findings if finding.tested and finding.leads]
        assert not any(finding.verdict is Verdict.DISPARITY for finding in leading)


def test_labels_of_one_class_are_refused():
    rows = people(**TWO)
    with pytest.raises(DataError) as raised:
        run(rows, rows.truth, truth=np.full(len(rows.group), "cook"))
    assert raised.value.column == "truth"


def test_models_with_the_same_warning_share_a_line():
    rng, names = np.random.default_rng(0), [f"m{place}" for place in range(12)]
    rows = {"id": [*map(str, range(400))], "group": ["a", "b"] * 200}
    rows["job"] = [*rng.choice(JOBS, 400)]
    table = pl.DataFrame(rows | {name: [*rng.permutation(rows["job"])] for name in names})
    result = audits.run(audits.parse_config({
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "job", "groups": ["group"]},
        "models": {name: {"table": table, "id": "id", "prediction": name} for name in names},
        "resampling": {"replicates": 20, "permutations": 19},
    }))  # fmt: skip
    same = [text for text in result.manifest.warnings if text.startswith("m0; m1")]
    assert len(same) == 1
    assert "(12 in all)" in same[0]
