"""Every number of a published work that ships equals that of the work's collected tables."""

import json
import re
from itertools import chain

import pytest

from equipoise.data import lexicon
from equipoise.studies import STUDIES
from equipoise.studies.study import read_study
from equipoise.studies.works import WORKS, read_work


@pytest.fixture(scope="session")
def goldens(shared_dir):
    """Return a function that reads a collected table, or the notes on protocols."""

    def read(*path):
        if path == ("protocols",):
            return (shared_dir / "protocols.md").read_text(encoding="utf-8")
        return json.loads(shared_dir.joinpath("goldens", *path).read_text(encoding="utf-8"))

    return read


def listed(rows):
    """Return rows of cells, each as a list."""
    return [[*row] for row in rows]


def transposed(rows):
    return [*map(list, zip(*rows, strict=True))]


def skewsize(goldens):
    """Yield each table of Albuquerque et al. with the rows that were collected."""
    for number in range(1, 8):
        table = goldens("papers", "skewsize_2024", f"table_{number}.json")
        yield f"Table {number}", listed(table["rows"].values())
    text = goldens("papers", "skewsize_2024", "text_numbers.json")
    images, models, domains = text["imagenet"], text["vlm"], text["domainnet"]
    counts = ("classes", "backgrounds", "images_per_pair")
    yield "Section 3.2", [[images[count]] for count in counts]
    sizes = (size.split("B")[0] for size in models["models"].values())
    yield "Section 3.3", [[float(size)] for size in sizes]
    yield "Section 3.3.1", listed(text["bands"].values())
    numbers = ("average_test_accuracy_percent", "worst_group_accuracy_gap_percent", "skewsize")
    yield "Appendix C", [[domains[number]] for number in numbers]
    correlations = domains["pearson_correlations_over_classes"]
    yield "Appendix C, correlations", listed(row.values() for row in correlations.values())
    yield "Appendix D.4", [[models["occupations"]], [models["sports"]]]
    shares = [model for model in images["models"] if "about" in model]
    yield "Appendix E", [[int(model.split("about ")[1].split("%")[0])] for model in shares]


def hall(goldens):
    """Yield each table of Hall et al. with the rows that were collected."""

    def read(name):
        return goldens("papers", "hall_2023", f"{name}.json")

    figure = read("figure_1")
    yield (
        "Figure 1",
        [
            [effects.get(effect) and f"Study {effects[effect]}" for effect in figure["effects"]]
            for effects in figure["rows"].values()
        ],
    )
    mapping = read("figure_10")["rows"]
    yield "Figure 10", [[", ".join(classes), single] for _, classes, single in mapping]
    protocols = read("protocols")
    first, second = protocols["study_1"], protocols["study_2"]
    data, concepts = first["data"], first["concepts"]
    thousands = (int(data[f"{name}_images"].rstrip("k")) for name in ("visual_genome", "coco"))
    yield (
        "Section 4.1",
        [
            [*thousands],
            [concepts["visual_genome"], concepts["coco"]],
            [None, data["coco_categories"]],
            [None, data["captions_per_image"]],
        ],
    )
    yield (
        "Section 4.1, settings",
        [[first["templates"]], [first["min_images_per_group"]], [20], [5], [first["bootstraps"]]],
    )
    assert "20 %" in first["threshold"]
    assert first["evaluations"]["Reliable"]["prevalence"].startswith("1:5")
    reliable = second["evaluations"]["Reliable"]
    assert (reliable["prevalence"], second["metrics"][0]) == ("1:4", "hit rate at 5")
    yield (
        "Section 5.1",
        [[reliable["min_images_per_group"]], [4], [5], [second["bootstraps"]]],
    )
    text = protocols["numbers_in_text"]
    concreteness = [*text["concreteness"].values()]
    yield "Section 6", [[value] for value in (*concreteness[:2], f"above {concreteness[2]}")]
    showers = text["showers with a bucket or basin"].values()
    yield "Section 6, showers", [[share.removesuffix(" %").removesuffix("%") for share in showers]]
    groups = ("Africa", "Asia", "Europe")
    rare = text["rare concepts"].values()
    yield "Section 9.2.2", [[row.get(group) for group in groups] for row in rare]


def howard(goldens):
    """Yield each table of Howard et al. with the rows that were collected."""
    for number in (*range(1, 7), *range(8, 18)):
        table = goldens("papers", "howard_2024", f"table_{number:02}.json")
        yield f"Table {number}", listed(table["rows"].values())
    three = goldens("papers", "howard_2024", "section_10_2.json")["rows"]
    sets, images, skew, pairs = three.values()
    of_pairs = [None, None, " to ".join(map(str, pairs))]
    yield "Section 10.2", [[sets, images, skew], *[of_pairs] * 3]
    quality = goldens("papers", "howard_2024", "section_10_3.json")
    yield "Section 10.3", listed(quality["rows"].values())


def chen_dou(goldens):
    """Yield each table and figure of Chen and Dou with the rows that were collected."""
    for number in (1, 2):
        table = goldens("papers", "chen_dou_2022", f"table_{number}.json")
        yield f"Table {number}", listed(table["rows"].values())
    for number in (1, 6, 7, 8, 9):
        figure = goldens("papers", "chen_dou_2022", f"edition2_figure_{number:02}.json")
        yield f"Figure {number}", listed(figure["rows"].values())
    for number in (2, 3):
        figure = goldens("papers", "chen_dou_2022", f"edition2_figure_{number:02}.json")
        for part in ("most", "least"):
            yield f"Figure {number}, {part}", listed(figure[f"{part}_biased"].values())
    formulas = dict(goldens("papers", "chen_dou_2022", "edition2_formulas.json")["rows"])
    edits = formulas.pop("edits")
    formulas["k"] = ", ".join(map(str, formulas["k"]))
    first = ("fairness score", "gender subspace", "neuron relevance")
    ordered = {name: formulas.pop(name) for name in first} | edits | formulas
    yield "Section on methods", [[text] for text in ordered.values()]


def mandal(goldens):
    """Yield each table of Mandal with the rows that were collected."""

    def read(name):
        return goldens("papers", "mandal_2024", f"{name}.json")

    yield from _mandal_of_faces(goldens)
    yield from _mandal_of_labels(read("tables_5_1_to_5_5"))
    yield from mandal_of_networks(goldens, read)
    yield from mandal_generators(read)
    scores = goldens("mandal_table_a1.json")["iss_intra"].values()
    yield "Table A.1", transposed(row.values() for row in scores)
    similarities = goldens("mandal_table_a2.json")["similarity"]
    yield "Table A.2, men", listed(similarities["Man"].values())
    yield "Table A.2, women", listed(similarities["Woman"].values())


def _mandal_of_faces(goldens):
    """Yield the tables of chapters 3 and 4."""

    def read(name):
        return goldens("papers", "mandal_2024", f"{name}.json")

    pairs = read("tables_3_1_and_4_1")["rows"].values()
    for number, code in (("3.1", 2), ("4.1", 3)):
        yield f"Table {number}", [[row[0], ", ".join(row[1]), row[code]] for row in pairs]
    similarity = read("table_3_2")
    yield "Table 3.2", listed(similarity["rows"].values())
    yield "Table 3.3", listed(read("table_3_3")["rows"].values())
    words = similarity["claim"].split()
    counts = [[int(word)] for word in words if word.isdigit()]
    yield "Section 3.6", counts
    sums = read("table_4_2")
    blocks = (sums[kind] for kind in ("positive and negative words", "adjectives", "occupations"))
    yield (
        "Table 4.2",
        [
            row
            for block in blocks
            for row in (
                *block["man"].values(),
                *block["woman"].values(),
                block["gender difference"],
            )
        ],
    )
    yield "Table 4.2, from Table A.2", _sums(goldens("mandal_table_a2.json"), sums["regions"])
    figures = read("figures_4_3_4_5_4_7")["rows"].values()
    for number, (r, p, _) in zip(("4.3", "4.5", "4.7"), figures, strict=True):
        yield f"Figure {number}", [[r, p, None]]


def _sums(words, regions):
    """Return sums of Table A.2 over positive and negative words, trends and differences."""
    places, rows, totals = [words["regions"].index(region) for region in regions], [], []
    for by_word in words["similarity"].values():
        sums = [
            [sum(by_word[word][place] for word in words[kind]) for place in places]
            for kind in ("positive", "negative")
        ]
        rows += [*sums, [up - down for up, down in zip(*sums, strict=True)]]
        totals.append([sum(both) for both in zip(*sums, strict=True)])
    rows.append([abs(a - b) for a, b in zip(*totals, strict=True)])
    return [[round(value, 3) for value in row] for row in rows]


def _mandal_of_labels(tables):
    """Yield the tables of chapter 5."""
    counts, words, shapes, weat, scores, frequent, facts = tables
    by_group = [counts["man"], counts["woman"]]
    yield (
        "Table 5.1",
        [[of.get(label) for of in by_group] for label in by_group[0] | by_group[1]],
    )
    kinds = [words["gender attributes"], words["gender attributes - relations"]]
    yield "Table 5.2", [[", ".join(of) for of in kind.values()] for kind in kinds]
    for number, table in zip(("5.3", "5.4", "5.5"), (shapes, weat, scores), strict=True):
        yield f"Table {number}", listed(table["rows"].values())
    for number, kind in (("5.1", "adjectives"), ("5.2", "occupations")):
        lists = (frequent[f"{kind}, {group}"] for group in ("men", "women"))
        yield f"Figure {number}", transposed(lists)
    shares = [value for key, value in frequent.items() if key.startswith("share of")]
    yield "Section 5.3.1", [[round(100 * share)] for share in shares]
    yield "Figures 5.3 to 5.6", [[value] for value in facts["rows"].values()]


def mandal_generators(read):
    """Yield the tables of Mandal on models that make images, chapters 6, 8 and 9."""
    both = ("DALL-E 2", "Stable Diffusion")
    kinds, targets = read("tables_6_3_and_6_4")
    yield "Table 6.3", listed(kinds["rows"].values())
    keywords = (sides.values() for sides in targets["rows"].values())
    yield "Table 6.4", [[", ".join(words)] for words in chain.from_iterable(keywords)]
    yield "Section 6.3.1", [[n] for n in targets["images"].values()]
    leanings = read("table_6_5")["rows"].values()
    keys = ("category", *chain.from_iterable((name, f"{name} leans") for name in both))
    yield "Table 6.5", [[row[key] for key in keys] for row in leanings]
    rows = {
        name: [[*chain.from_iterable(row[model] for model in both)] for row in table.values()]
        for name in ("mcas_components", "table_8_1", "table_9_3")
        for table in [read(name)["rows"]]
    }
    yield "Table 6.5, components", rows["mcas_components"]
    yield "Table 6.6", listed(rows_by_model(read("table_6_6")["rows"]))
    yield "Table 8.1", rows["table_8_1"]
    yield "Table 8.2", listed(rows_by_model(read("table_8_2")["rows"]))
    angles = read("table_9_3")
    yield "Section 9.4.1", [[angles["offset"]]]
    yield "Table 9.3", rows["table_9_3"]
    yield "Section 9.4.2", listed(row.values() for row in angles["means printed"].values())


def rows_by_model(tables):
    """Return the rows of all models of a table, in their order."""
    return chain.from_iterable(table.values() for table in tables.values())


def mandal_of_networks(goldens, read):
    """Yield the tables of chapters 7 and 10 with the rows that were collected."""
    families = read("table_7_2_families")
    first, second = families["protocol of chapter 7"], families["protocol of chapter 10"]
    images, classes = first["test images"], len(first["classes"])
    keys = ("training images", "a class", "imbalance", "test images")
    in_cell = images // (2 * classes)
    yield "Section 7.3.1", [*([first[key]] for key in keys), [in_cell], [first["runs"]]]
    cnn, vit = ([*map(int, re.findall(r"\d+", first[name]))] for name in ("CNN", "ViT"))
    yield "Section 7.3.1, stages", [[cnn[0], None], cnn[1:], vit[:2], vit[2:]]
    yield "Table 7.2", listed(goldens("mandal_table_7_2.json")["rows"].values())
    higher = families["percent higher for ViT"]
    yield "Table 7.2, families", [*listed(families["rows"].values()), higher]
    table = read("table_7_3")
    larger = {", ".join((of, name)): n for of, (name, n) in table["percent higher"].items()}
    percents = [larger.get(column) for column in table["columns"]]
    yield "Table 7.3", [*listed(table["rows"].values()), percents]
    table, groups = read("table_7_4"), ("men", "women")
    top, higher = table["top three"], table["percent higher for ViT"]
    rows = {
        name: [cell for group, share in zip(groups, shares, strict=True)
               for cell in (share, ", ".join(top[name][group]) if name in top else None)]
        for name, shares in table["rows"].items()
    }  # fmt: skip
    yield "Table 7.4", [*rows.values(), [higher["men"], None, higher["women"], None]]
    table = read("table_7_5")
    higher = [table["percent higher for ViT"][group] for group in groups]
    yield "Table 7.5", [*listed(table["rows"].values()), higher]
    least, runs = second["training images"].partition(" in ")[0], second["runs"]
    networks = goldens("mandal_table_10_1.json")["rows"]
    numbers = (len(second["classes"]), second["imbalance"], least, runs, len(networks) * runs)
    yield "Section 10.3.1", [[number] for number in numbers]
    yield "Table 10.1", listed(networks.values())


def berg(goldens):
    """Yield the table of the README of Berg et al."""
    skew = re.search(r"CLIP ViT-B/16 (\.\d+) → DebiasCLIP (\.\d+)", goldens("protocols"))
    accuracy = re.search(r"ImageNet ([\d.]+) → ([\d.]+)", goldens("protocols"))
    yield "README", transposed([[*map(float, skew.groups())], [*map(float, accuracy.groups())]])


def xiao(goldens):
    """Yield the table of models that was collected of GenderBias-VL."""
    models = read_work("xiao_2024").tables["bias_overall.csv"].rows
    line = next(text for text in goldens("protocols").splitlines() if "bias_overall.csv" in text)
    rows = []
    for name in models:
        numbers = re.search(rf"{re.escape(name)} ([\d., *]+)", line)[1]
        rows.append([*map(float, re.findall(r"\d*\.\d+", numbers))])
    yield "bias_overall.csv", rows


def no_tables(_):
    """Yield nothing: nothing printed was collected."""
    return iter(())


COLLECTED = {
    "berg_2022": berg,
    "chen_dou_2022": chen_dou,
    "hall_2023": hall,
    "howard_2024": howard,
    "cho_2023": no_tables,
    "fraser_2024": no_tables,
    "mandal_2024": mandal,
    "visogender_2023": no_tables,
    "xiao_2024": xiao,
    "skewsize_2024": skewsize,
}
QUALITATIVE = {("hall_2023", "Table 1"), ("hall_2023", "Section 4.1, evaluations")}
"""Tables in words of our own."""


@pytest.mark.parametrize("name", WORKS)
def test_every_printed_cell_equals_the_collected_one(name, goldens):
    work = read_work(name)
    collected = dict(COLLECTED[name](goldens))
    for number, rows in collected.items():
        assert listed(work.tables[number].rows.values()) == rows, number
    with_cells = {number for number, table in work.tables.items() if table.rows}
    assert with_cells == {*collected} | {number for of, number in QUALITATIVE if of == name}


def test_choices_have_their_letters(goldens):
    choices = goldens("papers", "hall_2023", "table_1.json")["design_choices"]
    rows = read_work("hall_2023").tables["Table 1"].rows
    collected = {
        entry[0]: [part, entry[2:]] for part, entries in choices.items() for entry in entries
    }
    assert {letter: [*row[:2]] for letter, row in rows.items()} == collected


@pytest.mark.parametrize("name", ["hall_2023", "skewsize_2024"])
def test_every_collected_claim_ships(name, goldens):
    collected = goldens("papers", name, "claims.json")["claims"]
    assert [*read_work(name).claims] == [claim["id"] for claim in collected]


def test_headings_and_rows_follow_the_collected_table(goldens):
    table = goldens("papers", "skewsize_2024", "table_7.json")
    printed = read_work("skewsize_2024").tables["Table 7"]
    assert [*printed.columns] == table["columns"]
    assert [*printed.rows] == [*table["rows"]]
    regions = goldens("papers", "mandal_2024", "table_4_2.json")["regions"]
    assert [*read_work("mandal_2024").tables["Table 4.2"].columns] == regions
    masked = goldens("papers", "mandal_2024", "table_7_3.json")
    printed = read_work("mandal_2024").tables["Table 7.3"]
    assert [name.lower() for name in printed.columns] == [n.lower() for n in masked["columns"]]
    assert [*printed.rows][:-1] == [*masked["rows"]]
    words = goldens("mandal_table_a2.json")
    printed = read_work("mandal_2024").tables["Table A.2, men"]
    assert [*printed.columns] == words["regions"]
    assert [*printed.rows] == [*words["similarity"]["Man"]]


@pytest.mark.parametrize("name", WORKS)
def test_words_of_a_printed_table_are_a_lexicon(name):
    for table in read_work(name).tables.values():
        if table.words:
            assert lexicon(table.words).content


def test_a_cell_of_no_row_or_column_is_empty():
    table = read_work("skewsize_2024").tables["Table 4"]
    assert table.cell("BLIP2-6.7B", "Sports") == 0.36
    assert table.cell("BLIP2-6.7B", "Chess") is None
    assert table.cell("another", "Sports") is None


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_a_published_work_takes_its_source(name):
    study = read_study(name)
    if study.published:
        assert study.source == read_work(study.published).source
