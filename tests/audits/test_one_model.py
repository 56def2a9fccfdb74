"""The results of a model do not depend on the other models of an audit."""

import numpy as np
import pytest

from audits.activations import test_activations as activations
from audits.associations import association_world as associations
from audits.concepts import worlds as concepts
from audits.similarity import test_similarity as similarity
from concept_worlds import world
from equipoise import audits
from equipoise.audits import config as audit_config
from equipoise.audits.findings import UncorrectedFinding, conclude
from equipoise.core import Family, Verdict
from equipoise.metrics.spec import corrected_with
from report.synthetic import NAN, finding


def findings_of(result, model):
    """Return the findings of a model as text, because NaN is unequal to itself."""
    return [repr(finding) for finding in result.findings if corrected_with(finding) == model]


def matching():
    """A model that scores pairs of images and texts, and no two texts."""
    scores = associations.image_vectors() @ associations.word_vectors().T
    names = associations.TEXTS["word"].to_list()
    return {"pairs": [{"between": ["images", "words"], "file": scores, "names": names}]}


def without_doctors():
    vectors = associations.image_vectors()
    vectors[associations.rows_of("job", "doctor")] = 0.0
    return associations.model_of(vectors)


def unanswerable():
    """Yield configs with a model, and another that can't answer something."""
    able, labels = associations.model(), {"images": "images", "groups": "gender"}
    labels |= {"metric": "predicted_label_weat", "labels": "prompts"}
    labels |= {"attributes": ["men", "women"]}
    scores = associations.measure("association_score", "doctor", "nurse", modalities=["II"])
    yield associations.values(labels, models={"able": able, "other": matching()})
    yield associations.values(scores, models={"able": able, "other": without_doctors()})
    models = activations.values()["models"]
    blank = models["ours"] | {"maps": {"file": np.zeros((activations.N, 100))}}
    yield activations.values() | {"models": {"able": models["ours"], "other": blank}}
    of_women = similarity.images() * (np.arange(similarity.N) % 2)[:, None]
    few = similarity.embedded(images={"file": of_women})
    yield similarity.values(models={"able": similarity.embedded(), "other": few})
    data = concepts.tables(*world(3, n=400))
    yield concepts.with_data(data, max_unmatched=1.0) | {
        "models": {"able": {"file": data["scores"]}, "other": {"file": data["scores"][:40]}}
    }


@pytest.mark.parametrize("values", [*unanswerable()])
def test_questions_a_model_cannot_answer_are_listed_and_stop_no_other_model(values):
    alone = values | {"models": {"able": values["models"]["able"]}}
    full, single = map(audits.parse_config, (values, alone))
    result = audits.run(full)
    assert findings_of(result, "able") == findings_of(audits.run(single), "able") != []
    assert len(findings_of(result, "other")) < len(findings_of(result, "able"))
    assert audits.plan(full).tests == audits.plan(single).tests
    for notes in (result.manifest.notes, audits.plan(full).notes):
        assert [note for note in notes if note.startswith("other") and "measured" in note]


def drafted(model, p, **changes):
    settled = {"model": model, "p_value": p, "q_value": NAN, "excess": 0.4}
    return UncorrectedFinding(finding(**(settled | changes)), "higher")


def test_findings_of_a_model_do_not_change_the_verdicts_of_another():
    strong = [drafted("strong", 1e-6, subject=str(k)) for k in range(6)]
    weak = [drafted("weak", p, subject=str(k)) for k, p in enumerate((0.03, 0.5, 0.6, 0.9))]
    findings = conclude([*strong, *weak], audit_config.TestingConfig())
    judged = [finding for finding in findings if finding.model == "weak"]
    assert [finding.q_value for finding in judged] == pytest.approx([0.12, 0.8, 0.8, 0.9])
    assert {finding.verdict for finding in judged} == {Verdict.INCONCLUSIVE}
    assert tuple(judged) == conclude(weak, audit_config.TestingConfig())
    assert {finding.verdict for finding in findings if finding.model == "strong"} == {
        Verdict.DISPARITY
    }


def test_comparisons_of_models_are_corrected_separately():
    between = {"metric": "encoder_difference", "audit": "associations"}
    drafts = [
        drafted("a", 0.01),
        drafted("", 0.02),
        drafted("a", 0.03, **between),
        drafted("b", 0.04, **between),
        drafted("a", 0.05, family=Family.LEAF),
    ]
    q_values = [finding.q_value for finding in conclude(drafts, audit_config.TestingConfig())]
    # Both families of "a" have tests: each has half of alpha.
    assert q_values == pytest.approx([0.02, 0.02, 0.04, 0.04, 0.1])
    untested = drafted("", NAN, family=Family.LEAF)
    assert conclude([drafts[1], untested], audit_config.TestingConfig())[0].q_value == 0.02
