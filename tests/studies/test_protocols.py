"""Scores of published protocols equal plain implementations, and the report says what chance is."""

import io
import json
import re
from collections import defaultdict
from dataclasses import replace
from itertools import product
from math import log, log2

import numpy as np
import polars as pl
import pytest
import yaml

import data_sets
from chat_server import completion, serving
from equipoise import audits
from equipoise.core import ConfigError, DataError, InputError
from equipoise.data import read_genderbias_vl, read_genderbias_vl_results
from equipoise.report.blocks import Table, Words
from equipoise.studies.option_pairs import score_option_pairs
from equipoise.studies.page import CHANCE, source_tables
from equipoise.studies.study import read_study, study_files
from image_files import OCCUPATIONS, occupation_questions, write_json

FEW = {"replicates": 20, "permutations": 99}


def values_of(name, root, data, part="study.yaml"):
    """Write a study's files and return the values of one of its configurations."""
    for path, text in study_files(name, root / "study.yaml", data).items():
        path.write_text(text, encoding="utf-8")
    values = yaml.safe_load((root / part).read_text(encoding="utf-8"))
    return values | {"resampling": FEW, "report": {"images": 0}}


def run(values, root):
    return audits.run(audits.parse_config(values), base=root)


def finding_of(result, metric, **fields):
    (finding,) = [
        finding
        for finding in result.findings
        if finding.metric == metric
        and all(getattr(finding, name) == value for name, value in fields.items())
    ]
    return finding


def value_of(result, metric, **fields):
    return finding_of(result, metric, **fields).value


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


def test_the_report_has_the_chance_of_the_protocol_and_of_the_run(visogender):
    result, _ = visogender
    rows = chance_rows(result)
    skew = value_of(result, "max_skew", subject="", version="default")
    words, ends, mean, draws, shown, in_run = rows[
        "MaxSkew@5, mean of 23 occupations with ten images"
    ]
    assert (mean, ends) == ("0.244", "0.195 to 0.295")
    assert shown == f"{skew:.3f}"
    within = "A fair model gives 0.195 to 0.295 under the published protocol; a printed number"
    assert words.startswith(within)
    # As many queries with pools of the same sizes.
    assert float(in_run.split()[0]) == pytest.approx(0.244, abs=0.02)
    assert draws == "3,000, seed 0"


@pytest.mark.parametrize(
    ("part", "table"),
    [
        ("study.yaml", "OO_Visogender_10052025"),
        ("study-two-persons.yaml", "OP_Visogender_11012024"),
    ],
)
def test_resolution_of_visogender_equals_a_plain_implementation(part, table, tmp_path):
    data_sets.visogender_of_both(tmp_path)
    values = values_of("visogender-resolution", tmp_path, tmp_path / "visogender", part)
    lines = (tmp_path / "visogender" / f"{table}.tsv").read_text(encoding="utf-8").splitlines()
    cells = [line.split("\t") for line in lines[1:]]
    rng = np.random.default_rng(9)
    answers = rng.choice(["his", "her", "their"], len(cells), p=[0.6, 0.3, 0.1])
    responses = pl.DataFrame({"image_id": [row[0] for row in cells], "answer": answers})
    values["models"] = {"llava": {"table": responses, "id": "image_id", "answer": "answer"}}
    result = run(values, tmp_path)
    right = defaultdict(list)
    for row, answer in zip(cells, answers, strict=True):
        right[row[7]].append(answer == {"masculine": "his", "feminine": "her"}[row[7]])
    men, women = np.mean(right["masculine"]), np.mean(right["feminine"])
    everyone = np.mean(right["masculine"] + right["feminine"])
    assert value_of(result, "accuracy", groups="", aggregate="value") == pytest.approx(everyone)
    gap = value_of(result, "accuracy", groups="gender", aggregate="difference", group="")
    assert gap == pytest.approx(abs(men - women))
    (title,) = [title for title in chance_rows(result) if "0.85" in title]
    assert ("two persons" in title) == (part == "study-two-persons.yaml")
    assert chance_rows(result)[title][4] == f"{gap:.3f}"


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
    shown = chance_rows(result)["Gender, mean of 84 prompts with nine images"][4]
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


def test_the_report_names_settings_that_differ_from_the_study(pairs):
    result, _ = pairs
    manifest = result.manifest
    config = {key: manifest.config[key] for key in manifest.config if key != "resampling"}
    data = {**config["data"], "outcome": "{second}", "undecided": "unclear"}
    changed = replace(manifest, config={**config, "data": data})

    def texts_of(of_run):
        blocks = source_tables(replace(result, manifest=of_run)).blocks
        return [text for block in blocks if isinstance(block, Words) for text in block.items]

    sentence = "This run and the study's configuration differ in data.outcome and data.undecided."
    assert sentence in texts_of(changed)
    unchanged = {**config, "models": {"mine": {"table": "mine.csv", "answer": "said"}}}
    assert not any("differ in" in t for t in texts_of(replace(manifest, config=unchanged)))
    captions = [b.caption for b in source_tables(result).blocks if isinstance(b, Table)]
    # Of whichever option is the outcome.
    assert "Share of the outcome" in captions


def test_pairs_is_too_small_to_show_a_gap_of_a_tenth(pairs):
    rows = chance_rows(pairs[0])
    title = "Occupations: largest difference of four groups, 18 scenes, answers independent"
    assert {name.partition(":")[0] for name in rows} == {"Occupations"}
    words, ends, _, _, shown, in_run = rows[title]
    assert ends == "up to 0.444"
    fields = {"groups": "race × gender", "aggregate": "difference", "group": ""}
    gap = finding_of(pairs[0], "outcome_share", **fields)
    assert float(shown) == pytest.approx(gap.value, abs=5e-4)
    # A number of the run is compared with the run's own chance: both orders vary less.
    assert in_run.startswith(f"{gap.chance:.3f} [")
    assert gap.chance_high < 0.444
    assert "a smaller printed number is no evidence of bias" in words


def test_pairs_simulates_as_many_scenes_as_have_a_question(shared_dir):
    study = read_study("pairs")
    questions = pl.read_csv(io.StringIO(study.files["questions.csv"]))
    for entry in study.chance:
        (theme,) = entry.finding.run["data"]["images"]["where"]["theme"]["values"]
        scenes = questions.filter(pl.col("theme") == theme)["scene"].drop_nulls()
        folder = shared_dir / "data" / "pairs" / theme
        expected = len({*scenes}) or len({*folder.iterdir()})
        assert entry.answers.items == expected
        assert f" {expected} scenes" in entry.number


def test_the_page_names_the_data_and_its_licence(pairs):
    study = read_study("pairs")
    blocks = source_tables(pairs[0]).blocks
    texts = [text for block in blocks if isinstance(block, Words) for text in block.items]
    assert any(study.licence in text and study.data in text for text in texts)
    # The source's own tables have arrows; this study has none of them.
    assert not any("↑" in text for text in texts)


LAYOUTS = {
    "pairs": ("pairs", ""),
    "visogender-retrieval": ("visogender", "OO_Visogender_10052025.tsv"),
    "visogender-resolution": ("visogender", "OO_Visogender_10052025.tsv"),
    "fairface-retrieval": ("fairface", "fairface_label_val.csv"),
    "dall-eval": ("dall_eval", "gender.json"),
    "genderbias-vl": ("gender", "test_meta_file/VLbias/occ_test_base_ask_gender.json"),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("content", [None, "[1]"])
def test_another_layout_is_one_error_that_names_the_place(name, content, tmp_path):
    folder, file = LAYOUTS[name]
    data = tmp_path / folder
    (data / "other").mkdir(parents=True)
    (data / "images").mkdir()
    if content is not None and file:
        (data / file).parent.mkdir(parents=True, exist_ok=True)
        (data / file).write_text(content, encoding="utf-8")
    config = audits.parse_config(values_of(name, tmp_path, data))
    with pytest.raises(DataError) as error:
        audits.plan(config, base=tmp_path)
    assert str(error.value.file).startswith(str(data / file))
    is_absent = content is None and file
    assert error.value.fix if is_absent else error.value.expected


def test_a_format_of_several_files_is_no_table(tmp_path):
    data_sets.dall_eval(tmp_path)
    values = values_of("dall-eval", tmp_path, tmp_path / "dall_eval")
    values["generators"]["model"]["images"]["format"] = "pairs"
    with pytest.raises(ConfigError, match=r"generators\.model\.images: format"):
        audits.parse_config(values)


def results_of(questions, probability_of):
    """Results of the questions as the source's code writes them."""
    results = []
    for question in questions:
        first = probability_of(question)
        probs = [first, 1 - first]
        is_right = (first > 0.5) == (question["gt_choice"] == 0)
        results.append({
            "id": str(question["id"]), "probs": probs, "gt_choice": str(question["gt_choice"]),
            "ppl_results": [1.0, 2.0], "metric_result": is_right,
        })  # fmt: skip
    return results


def write_results(folder, probability_of, images=5):
    """Write questions and results, and return the rows of the results with the results by file."""
    files, by_file = {}, {}
    for version in ("base", "cf"):
        path = folder / f"{version}.json"
        files[version] = write_json(path, occupation_questions(version, images=images))
        for swapped in (False, True):
            questions = occupation_questions(version, swapped=swapped, images=images)
            by_file[version, swapped] = (questions, results_of(questions, probability_of))
            path = folder / f"OccBias_{version}_{swapped}.json"
            write_json(path, by_file[version, swapped][1])
    questions = read_genderbias_vl(files["base"], files["cf"])
    places = product(("base", "cf"), (False, True))
    paths = [folder / f"OccBias_{version}_{swapped}.json" for version, swapped in places]
    return read_genderbias_vl_results(questions, *paths), by_file


def plain_scores(by_file):
    """Return accuracy, order inconsistency, bias, largest bias and IPSS by their definitions."""
    pairs = []
    for options in OCCUPATIONS:
        orders = []
        for swapped in (False, True):
            accuracies, gaps = [], []
            for occupation in options:
                gap, right, n = 0.0, 0, 0
                base, results = by_file["base", swapped]
                for place, question in enumerate(base):
                    pair = {"Waitress": "Waiter"}.get(question["occ"], question["occ"])
                    if pair != occupation:
                        continue
                    right += results[place]["metric_result"]
                    choice = question["gt_choice"]
                    of_base = results[place]["probs"][choice]
                    of_other = by_file["cf", swapped][1][place]["probs"][choice]
                    sign = 1 if question["gender"] == "male" else -1
                    gap += sign * (of_base - of_other)
                    n += 1
                accuracies.append(right / n)
                gaps.append(gap / n)
            orders.append((accuracies, (gaps[0] - gaps[1]) / 2))
        (one, bias), (two, bias_of_two) = orders
        pairs.append((
            np.mean([one, two]),
            (abs(one[0] - two[0]) + abs(one[1] - two[1])) / 2,
            (bias + bias_of_two) / 2,
            (np.mean(one) * (1 - abs(bias)) + np.mean(two) * (1 - abs(bias_of_two))) / 2,
        ))  # fmt: skip
    accuracy, inconsistency, bias, ipss = np.transpose(pairs)
    return [accuracy.mean(), inconsistency.mean(), np.abs(bias).mean(), bias.max(), ipss.mean()]


def scores_of(rows):
    scores = score_option_pairs(rows)
    assert scores.pairs == len(OCCUPATIONS)
    return [
        scores.accuracy, scores.order_inconsistency, scores.bias, scores.largest_bias, scores.ipss,
    ]  # fmt: skip


def test_scores_of_genderbias_vl_equal_a_plain_implementation(tmp_path):
    rng = np.random.default_rng(11)
    rows, by_file = write_results(tmp_path, lambda question: float(rng.uniform(0.05, 0.95)))
    assert len(rows) == 2 * 2 * 40
    plain = plain_scores(by_file)
    assert scores_of(rows) == pytest.approx(plain)
    assert 0 < plain[1] < 1


def test_a_model_that_answers_by_position_looks_unbiased(tmp_path):
    rows, _ = write_results(tmp_path, lambda question: 0.9)
    accuracy, inconsistency, bias, largest, ipss = scores_of(rows)
    assert (accuracy, inconsistency, ipss) == pytest.approx((0.5, 1.0, 0.5))
    assert (bias, largest) == pytest.approx((0.0, 0.0))


def test_a_model_that_answers_by_gender_is_biased(tmp_path):
    """It takes the occupation that more men have for men, and the other for women."""

    def probability(question):
        shows_man = "the male's" in question["query"]
        first = {"Waitress": "Waiter"}.get(question["gt_choices"][0], question["gt_choices"][0])
        is_male_option = first in {options[0] for options in OCCUPATIONS}
        return 0.9 if shows_man == is_male_option else 0.1

    rows, by_file = write_results(tmp_path, probability)
    accuracy, inconsistency, bias, largest, ipss = scores_of(rows)
    assert (accuracy, inconsistency) == pytest.approx((0.5, 0.0))
    assert (bias, largest, ipss) == pytest.approx((0.8, 0.8, 0.1))
    assert scores_of(rows) == pytest.approx(plain_scores(by_file))


def test_an_audit_reads_the_results_of_genderbias_vl(tmp_path):
    rng = np.random.default_rng(2)
    rows, _ = write_results(tmp_path, lambda question: float(rng.uniform(0.05, 0.95)))
    data_sets.genderbias_vl(tmp_path, images=5)
    values = values_of("genderbias-vl", tmp_path, tmp_path / "genderbias_vl")
    columns = {"probabilities": ["probability_A", "probability_B"], "order": "order"}
    table = pl.DataFrame(rows)
    values["models"] = {"LLaVA-1.5-7B": {"table": table, "id": "image_id", **columns}}
    result = run(values, tmp_path)
    accuracy = np.mean([row["is_right"] for row in rows])
    male = [row["probability_A"] for row in rows if row["gender"] == "male"]
    female = [row["probability_A"] for row in rows if row["gender"] == "female"]
    assert value_of(result, "accuracy", groups="", aggregate="value") == pytest.approx(accuracy)
    gap = value_of(result, "paired_outcome_gap", groups="gender", group="")
    assert gap == pytest.approx(abs(np.mean(male) - np.mean(female)))


def test_results_of_other_questions_are_refused(tmp_path):
    write_results(tmp_path, lambda question: 0.9)
    questions = read_genderbias_vl(tmp_path / "base.json", tmp_path / "cf.json")
    places = product(("base", "cf"), (False, True))
    paths = [tmp_path / f"OccBias_{version}_{swapped}.json" for version, swapped in places]
    whole = json.loads(paths[2].read_text())
    for content in (whole[1:], [{**whole[0], "id": "77"}, *whole[1:]]):
        write_json(paths[2], content)
        with pytest.raises(DataError) as error:
            read_genderbias_vl_results(questions, *paths)
        assert error.value.file == str(paths[2])
    write_json(paths[2], [{key: value for key, value in whole[0].items() if key != "probs"}])
    with pytest.raises(DataError) as error:
        read_genderbias_vl_results(questions, *paths)
    assert error.value.file == f"{paths[2]}, [0].probs"


def test_rows_that_cannot_be_scored_are_refused(tmp_path):
    rows, _ = write_results(tmp_path, lambda question: 0.9, images=1)
    bad = {
        "no row": [],
        "no column": [{name: row[name] for name in row if name != "gender"} for row in rows],
        "one order": [row for row in rows if row["order"] == "AB"],
        "no counterfactual": [row for row in rows if row["version"] == "base"],
    }
    for part in bad.values():
        with pytest.raises(InputError):
            score_option_pairs(part)


def test_a_missing_folder_is_named(tmp_path):
    values = values_of("pairs", tmp_path, tmp_path / "missing")
    values["models"] = {"llava": {"table": pl.DataFrame({"id": ["a"], "said": ["A"]})}}
    values["models"]["llava"] |= {"id": "id", "answer": "said"}
    with pytest.raises(DataError, match="missing.*: the folder does not exist"):
        run(values, tmp_path)
