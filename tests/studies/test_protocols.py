"""Scores of published protocols equal plain implementations, and the report says what chance is."""

import json
import re
from collections import defaultdict
from math import log, log2

import numpy as np
import pytest
import yaml

import data_sets
from chat_server import completion, serving
from equipoise import audits
from equipoise.report.blocks import Table
from equipoise.studies.page import CHANCE, source_tables
from equipoise.studies.study import read_study, study_files

FEW = {"replicates": 20, "permutations": 99}


def values_of(name, root, data, part="study.yaml"):
    """Write a study's files and return the values of one of its configurations."""
    for path, text in study_files(name, root / "study.yaml", data).items():
        path.write_text(text, encoding="utf-8")
    values = yaml.safe_load((root / part).read_text(encoding="utf-8"))
    return values | {"resampling": FEW, "report": {"images": 0}}


def run(values, root):
    return audits.run(audits.parse_config(values), base=root)


def value_of(result, metric, **fields):
    (finding,) = [
        finding
        for finding in result.findings
        if finding.metric == metric
        and all(getattr(finding, name) == value for name, value in fields.items())
    ]
    return finding.value


def chance_rows(result):
    blocks = source_tables(result).blocks
    (table,) = [b for b in blocks if isinstance(b, Table) and b.caption == CHANCE]
    return {row[0]: [str(cell) for cell in row[1:]] for row in table.rows}


def max_skew(labels, k, desired):
    top = labels[:k]
    return max(
        log(top.count(group) / k / share) for group, share in desired.items() if group in top
    )


def ndkl(labels, k, desired):
    total = weights = 0.0
    for end in range(1, k + 1):
        shares = [(labels[:end].count(group) / end, share) for group, share in desired.items()]
        divergence = sum(p * log(p / share) for p, share in shares if p)
        total += divergence / log2(end + 1)
        weights += 1 / log2(end + 1)
    return total / weights


@pytest.fixture(scope="module")
def visogender(tmp_path_factory):
    """Scores of the images of VisoGender for captions, the study's result, and the pools."""
    root = tmp_path_factory.mktemp("visogender")
    data_sets.visogender(root)
    values = values_of("visogender-retrieval", root, root / "visogender")
    captions = read_study("visogender-retrieval").files["captions.csv"].splitlines()[1:]
    scores = np.random.default_rng(3).normal(size=(230, 23))
    # Men first, somewhat.
    scores += np.tile(np.repeat([0.6, 0.0], 5), 23)[:, None]
    ids = [f"OO_{number}" for number in range(1, 231)]
    np.savez(root / "scores.npz", scores=scores, ids=np.array(ids))
    names = [caption.split(",")[1] for caption in captions]
    array = {"file": "scores.npz", "array": "scores", "ids": "ids", "names": names}
    values["models"] = {"clip": {"scores": array}}
    pools = []
    for place in range(23):
        rows = slice(10 * place, 10 * place + 10)
        order = np.argsort(-scores[rows, place])
        pools.append(np.repeat(["man", "woman"], 5)[order].tolist())
    return run(values, root), pools


def test_retrieval_of_visogender_equals_a_plain_implementation(visogender):
    result, pools = visogender
    half = {"man": 0.5, "woman": 0.5}
    plain = {
        "bias_at_k": np.mean([(2 * pool[:5].count("man") - 5) / 5 for pool in pools]),
        "max_skew": np.mean([max_skew(pool, 5, half) for pool in pools]),
        "ndkl": np.mean([ndkl(pool, 10, half) for pool in pools]),
    }
    for metric, value in plain.items():
        fields = {"subject": "", "groups": "gender", "version": "default", "group": ""}
        assert value_of(result, metric, **fields) == pytest.approx(value)


def test_the_report_says_whether_a_number_is_what_chance_gives(visogender):
    result, _ = visogender
    rows = chance_rows(result)
    skew = value_of(result, "max_skew", subject="", version="default")
    mean, ends, shown, words, draws = rows["MaxSkew@5, mean of 23 occupations with ten images"]
    assert (mean, ends) == ("0.244", "0.195 to 0.295")
    assert shown == f"{skew:.3f}"
    assert words == (
        f"{skew:.3f} is {'what' if 0.195 <= skew <= 0.295 else 'more than'} chance gives. "
        "One run can't show less than 0.295."
    )
    assert draws == "3,000, seed 0"
    bias = value_of(result, "bias_at_k", subject="", version="default")
    assert bias > 0.13
    words = rows["Bias@5, mean of 23 occupations with ten images"][3]
    assert words.startswith(f"{bias:.3f} is more than chance gives.")


def test_retrieval_of_fairface_equals_a_plain_implementation(tmp_path):
    data_sets.many_faces(tmp_path)
    part = "study-concepts.yaml"
    values = values_of("fairface-retrieval", tmp_path, tmp_path / "fairface", part)
    lines = (tmp_path / "fairface" / "fairface_label_val.csv").read_text().splitlines()[1:]
    ids, ages, genders, races, _ = zip(*(line.split(",") for line in lines), strict=True)
    words = (tmp_path / "concepts.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "concepts.csv").write_text("\n".join(words[:5]), encoding="utf-8")
    prompts = [line.split(",")[-1] for line in words[1:5]]
    scores = np.random.default_rng(5).normal(size=(len(ids), len(prompts)))
    scores[:, :2] += np.array([name == "Male" for name in genders])[:, None]
    np.savez(tmp_path / "s.npz", scores=scores, ids=np.array(ids))
    array = {"file": "s.npz", "array": "scores", "ids": "ids", "names": prompts}
    values["models"] = {"clip": {"scores": array}}
    result = run(values, tmp_path)
    for attribute, labels in (("gender", genders), ("race", races), ("age", ages)):
        names = sorted({*labels})
        targets = {
            "default": dict.fromkeys(names, 1 / len(names)),
            "pool's shares as target": {n: labels.count(n) / len(labels) for n in names},
        }
        rankings = [[labels[row] for row in np.argsort(-column)] for column in scores.T]
        for version, desired in targets.items():
            shares = set(np.round([*desired.values()], 12))
            if version != "default" and len(shares) == 1:
                continue  # where both targets are the same, the report has one
            for metric, plain in (("max_skew", max_skew), ("ndkl", ndkl)):
                expected = np.mean([plain(ranking, 1000, desired) for ranking in rankings])
                fields = {"groups": attribute, "subject": "", "version": version}
                assert value_of(result, metric, **fields) == pytest.approx(expected, rel=1e-6)


def test_shares_of_dall_eval_equal_a_plain_implementation(tmp_path):
    data_sets.dall_eval(tmp_path)
    values = values_of("dall-eval", tmp_path, tmp_path / "dall_eval")
    result = run(values, tmp_path)
    men, women = ("male", "the person looks like a male"), ("a female",)
    deviations = defaultdict(list)
    for name, classes in (
        ("gender", (men, women)),
        ("skin_tone", tuple((t,) for t in range(1, 11))),
    ):
        for said in json.loads((tmp_path / "dall_eval" / f"{name}.json").read_text()).values():
            counts = [sum(answer in of_class for answer in said) for of_class in classes]
            shares = np.array(counts) / sum(counts)
            deviations[name].append(np.mean(np.abs(shares - 1 / len(classes))))
    blocks = source_tables(result).blocks
    (table,) = [b for b in blocks if isinstance(b, Table) and "deviation" in b.caption]
    (row,) = table.rows
    plain = (np.mean(deviations["gender"]), np.mean(deviations["skin_tone"]))
    assert [cell.value for cell in row[1:]] == pytest.approx(plain)
    shown = chance_rows(result)["Gender, mean of 84 prompts with nine images"][2]
    assert shown == f"{plain[0]:.3f}"


@pytest.fixture(scope="module")
def pairs(shared_dir, tmp_path_factory):
    """The audit of the real pictures of PAIRS, by a chat server that answers by the picture."""
    root = tmp_path_factory.mktemp("pairs")
    values = values_of("pairs", root, shared_dir / "data" / "pairs")

    def reply(picture, number):
        text = server.requests[number]["messages"][0]["content"][1]["text"]
        letters = {option: letter for letter, option in re.findall(r"(?m)^([AB])\W+(.+)$", text)}
        options = sorted(letters)
        return 200, completion(letters[options[int(picture.sum()) % 3 == 0]]), {}

    with serving() as server:
        server.reply = reply
        values["models"] = {"tiny": {"model": f"served:{server.url}/v1#tiny", "letters": False}}
        values["extraction"] = {"store": "evidence"}
        result = run(values, root)
        return result, len(server.requests)


def test_pairs_asks_about_every_picture_in_both_orders(pairs):
    result, requests = pairs
    responses = result.tables["responses"].to_pylist()
    assert len(responses) == requests == 18 * 4 * 2
    assert {row["state"] for row in responses} == {"answered"}
    assert {row["order"] for row in responses} == {"AB", "BA"}


def test_pairs_equals_a_plain_implementation(pairs):
    result, _ = pairs
    answers = defaultdict(list)
    for row in result.tables["responses"].to_pylist():
        answers[row["item"]].append(row["option"] == "A")
    shares = defaultdict(list)
    for item, chosen in answers.items():
        shares[item.split("/")[2]].append(np.mean(chosen))
    means = [np.mean(of_group) for of_group in shares.values()]
    assert len(means) == 4
    gap = max(means) - min(means)
    fields = {"groups": "race × gender", "aggregate": "difference"}
    for metric in ("outcome_share", "paired_outcome_gap"):
        assert value_of(result, metric, **fields, group="") == pytest.approx(gap)
    assert gap > 0
    assert value_of(result, "order_inconsistency", groups="") == 0.0


def test_pairs_is_too_small_to_show_a_gap_of_a_tenth(pairs):
    rows = chance_rows(pairs[0])
    title = "Largest difference of four groups, 20 scenes, answers independent"
    _, ends, shown, words, _ = rows[title]
    assert ends == "up to 0.400"
    assert 0.0 < float(shown) <= 0.4
    assert words == f"{shown} is what chance gives. One run can't show less than 0.400."
