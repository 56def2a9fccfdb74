"""The definitions that Chen and Dou 2022 print, in plain numpy beside those of the package."""

import numpy as np
import pytest

from equipoise import audits
from equipoise.audits.config import load_as
from equipoise.data import lexicon
from equipoise.metrics import retrieval_entropy
from equipoise.mitigate import find_subspace
from equipoise.mitigate.neurons.config import Config
from equipoise.models.edits import Site
from equipoise.studies.repetition import contains
from equipoise.studies.study import read_study, study_files
from equipoise.studies.works import read_work

STUDY = read_study("chen-dou")
NEURONS = STUDY.parsed_configs[[*STUDY.configs].index("neurons")]
FORMULAS = {
    name: cell
    for name, (cell,) in read_work("chen_dou_2022").tables["Section on methods"].rows.items()
}
K = 12


def test_the_fairness_score_is_the_entropy_of_the_first_images_over_all_words():
    random = np.random.default_rng(0)
    scores, groups = random.normal(size=(9, 60)), random.choice(["a", "b", "c"], 60)
    entropies = []
    for row in scores:
        first = groups[np.argsort(-row)[:K]]
        shares = np.array([(first == name).mean() for name in ("a", "b", "c")])
        entropies.append(-sum(share * np.log(share) for share in shares if share) / np.log(3))
    value = retrieval_entropy(scores, groups, k=K, resampling=None).value
    assert value == pytest.approx(np.mean(entropies))
    words = lexicon("cho_2022").content
    lists = STUDY.words["cho-words.csv"].lists
    assert [len(words[name]) for name in lists] == [85, 6, 39, 15]
    assert "(85/6/39/15), K = 100" in FORMULAS["fairness score"]
    assert NEURONS["k"] == 100
    assert NEURONS["words"]["table"] == "cho-words.csv"


def test_the_subspace_is_the_principal_directions_of_vectors_less_their_groups_mean():
    random = np.random.default_rng(1)
    vectors, groups = random.normal(size=(40, 6)), np.repeat(["a", "b"], 20).astype(object)
    centred = vectors.copy()
    for name in ("a", "b"):
        centred[groups == name] -= vectors[groups == name].mean(axis=0)
    _, expected = np.linalg.eigh(centred.T @ centred)
    basis = find_subspace(vectors, groups, centre="group")[:2]
    assert np.abs(basis @ expected[:, :-3:-1]) == pytest.approx(np.eye(2), abs=1e-8)
    assert NEURONS["centre"] == "group"


def test_neurons_are_set_to_zero_or_to_the_mean_of_the_groups_means():
    import torch

    site = Site("layer", units=(1, 3), sets=(0, 0), means=(2.0, -1.0), spreads=(1.0, 1.0))
    tensor = torch.arange(8.0).reshape(2, 4)
    for mode, column in (("remove", (0.0, 0.0)), ("clamp", (2.0, -1.0))):
        edited = site.change(mode, tensor)
        assert edited[:, [1, 3]].tolist() == [[*column]] * 2
        assert edited[:, [0, 2]].tolist() == tensor[:, [0, 2]].tolist()
    assert NEURONS["mode"] == ["remove", "clamp"]
    assert [*map(str, NEURONS["counts"])] == FORMULAS["k"].split(", ")
    assert (NEURONS["rank"], NEURONS["layers"]) == ("relevance", ["visual_projection"])


def test_each_claim_is_judged_by_a_configuration(tmp_path):
    resolved = []
    for path, text in study_files("chen-dou", tmp_path / "study.yaml", None).items():
        path.write_text(text, encoding="utf-8")
    for path in tmp_path.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        if "recipes:" in text:
            continue
        config = load_as(path, Config) if "concepts:" in text else audits.load_config(path)
        resolved.append(config.model_dump(mode="json"))
    assert {claim.of for claim in STUDY.claims} == {*STUDY.work.claims}
    for claim in STUDY.claims:
        assert claim.holds
        assert any(contains(settings, claim.run) for settings in resolved), claim.of
