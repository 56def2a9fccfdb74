"""The demonstration with scenes: only the planted bias is detected."""

import sys

import numpy as np
import pytest
from scipy.stats import spearmanr

from audits.test_metamorphic import twice
from equipoise import audits
from equipoise.audits import demonstrating
from equipoise.audits.demonstrating import PREFIXES
from equipoise.cli.runs import page_of
from equipoise.core import MissingExtraError, Verdict

# A mean gap in logits that is of no practical size, as in the demonstration's config.
THRESHOLD = 0.25


@pytest.fixture(scope="module")
def results():
    torch = pytest.importorskip("torch", reason="could not import torch")
    pytest.importorskip("transformers", reason="could not import transformers")
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        # The fewest sets whose pools hold all prefixes of NDKL.
        patch.setattr(demonstrating, "SETS_PER_SUBJECT", PREFIXES // 12 + 1)
        return audits.demo_scenes()


def planted(results, model, attribute):
    rows = results["retrieval"].tables["planted_scenes"].to_pylist()
    matching = [row for row in rows if (row["model"], row["attribute"]) == (model, attribute)]
    return {name: np.array([row[name] for row in matching]) for name in matching[0]}


@pytest.mark.parametrize("attribute", ["hue", "frame"])
def test_planted_and_measured_strengths_rank_alike(results, attribute):
    biased = planted(results, "biased", attribute)
    assert len(biased["subject"]) == 24
    assert spearmanr(biased["strength"], biased["gap"]).statistic >= 0.9
    assert spearmanr(biased["strength"], biased["ndkl"]).statistic >= 0.7
    null = planted(results, "null", attribute)
    assert not null["strength"].any()
    assert np.abs(null["gap"]).max() < THRESHOLD
    assert null["ndkl"].mean() < biased["ndkl"].mean()


def test_associations_lean_where_planted(results):
    findings = results["associations"].findings
    scores = [
        finding for finding in findings if finding.metric == "association_score" and finding.subject
    ]
    verdicts = {
        model: [finding.verdict for finding in scores if finding.model == model]
        for model in ("biased", "null")
    }
    assert verdicts["biased"].count(Verdict.DISPARITY) >= 12
    assert Verdict.DISPARITY not in verdicts["null"]
    aligned = {finding.model: finding for finding in findings if finding.metric == "alignment"}
    assert aligned["biased"].value > 0.9
    assert aligned["biased"].verdict == Verdict.DISPARITY
    assert aligned["null"].p_value > 0.05
    assert aligned["null"].verdict != Verdict.DISPARITY


def test_similarity_shows_only_planted_bias(results):
    findings = results["similarity"].findings
    overall = {(f.model, f.groups, f.metric): f for f in findings if f.version == "default"}
    for attribute in ("hue", "frame"):
        # Strength planted and gap in logits rank alike.
        assert overall["biased", attribute, "alignment"].value >= 0.9
        assert overall["biased", attribute, "favourite_gap"].verdict == Verdict.DISPARITY
        quiet = overall["null", attribute, "favourite_gap"]
        assert quiet.p_value > 0.05
        assert quiet.verdict == Verdict.BELOW_THRESHOLD
    gaps = [f for f in findings if f.metric == "logit_gap" and f.version == "default"]
    verdicts = [f.verdict for f in gaps if f.model == "biased" and f.subject]
    assert verdicts.count(Verdict.DISPARITY) >= 24
    assert all(f.excess < THRESHOLD for f in gaps if f.model == "null")
    # Nothing that may lead of the null model is a disparity, whatever was found of the other.
    leading = {f.verdict for f in findings if f.model == "null" and f.leads and f.tested}
    assert leading == {Verdict.BELOW_THRESHOLD}
    # Its own preferences are there all the same.
    assert any(f.q_value < 0.05 for f in gaps if f.model == "null")


def test_the_report_is_honest_about_the_null_model(results):
    for kind, result in results.items():
        page = page_of(result)
        assert kind == "associations" or "preferences" in page.caveat
        sections = [section for make in page.sections if (section := make(result))]
        assert sections[0].id == "scenes"
        assert any("small preferences of its own" in note for note in result.manifest.notes)
        assert not twice(result.findings)


def test_without_torch_the_error_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    message = r"^torch is not installed\. .*'\.\[hf\]'"
    with pytest.raises(MissingExtraError, match=message):
        audits.demo_scenes()
