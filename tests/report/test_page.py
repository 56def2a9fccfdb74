"""The page: it loads nothing, escapes everything, and leaves nothing out."""

import base64
import hashlib
import html
import json
import re
from dataclasses import fields
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from equipoise.audits.labels.predictions.page import PAGE
from equipoise.core import AuditResult, Finding
from equipoise.metrics import SPECS
from equipoise.report import render
from equipoise.report.blocks import CLIPPED, NUMBER, P_VALUE, SHARE, Column, Table
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.text import VERDICT_TITLES, unbroken, visible
from equipoise.report.words import sentence
from report import synthetic
from report.pages import PAGES, result_and_page
from report.synthetic import manifest

RESULTS = {
    "faces": synthetic.faces,
    "comparison": synthetic.comparison,
    "hostile": synthetic.hostile,
    "many": synthetic.many_classes,
    "empty": lambda: AuditResult((), manifest()),
}


@cache
def page(name):
    return render(RESULTS[name](), COMPARISON if name == "comparison" else PAGE)


class Elements(HTMLParser):
    """Every element with its attributes, and the text of scripts, styles and headings."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.open = []
        self.raw = {"script": [], "style": []}
        self.text = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag in self.raw:
            self.raw[tag].append("")
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]][-1] += data
        else:
            self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


@cache
def elements(name):
    return Elements(page(name))


def data_of(name):
    return json.loads(elements(name).raw["script"][0])


@pytest.mark.parametrize("name", RESULTS)
def test_nothing_is_loaded(name):
    loading = {"link", "iframe", "object", "embed", "base", "form", "audio", "video", "svg"}
    assert loading.isdisjoint(tag for tag, _ in elements(name).found)
    for tag, attributes in elements(name).found:
        if tag == "img":  # a picture is inside the page, or nowhere
            source = attributes.pop("src") or ""
            assert re.fullmatch(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+", source)
        assert not {"src", "srcset", "action", "data", "style"} & attributes.keys(), tag
        assert (attributes.get("href") or "#").startswith("#")
        assert not any(key.startswith("on") for key in attributes)
    assert "url(" not in elements(name).raw["style"][0]
    assert "@import" not in elements(name).raw["style"][0]
    assert "http" not in elements(name).raw["script"][0]
    assert "http" not in elements(name).raw["script"][2]


@pytest.mark.parametrize("name", RESULTS)
def test_policy_allows_the_pages_own_code_and_nothing_else(name):
    policies = [
        attributes["content"] or ""
        for attributes in elements(name).all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    directives = dict(part.strip().split(" ", 1) for part in policies[0].split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["base-uri"] == directives["form-action"] == "'none'"

    def digest(text):
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    _, *scripts = elements(name).raw["script"]
    assert directives["script-src"].split() == [digest(script) for script in scripts]
    assert directives["style-src"] == digest(elements(name).raw["style"][0])
    assert "unsafe" not in policies[0]


def test_hostile_labels_stay_text():
    text = page("hostile").replace(elements("hostile").raw["script"][1], "")
    assert len(elements("hostile").all("script")) == 3
    assert "<script>alert" not in text
    assert "<img" not in text
    assert not set("\u202e\u2066\x1b") & set(text)
    visible_text = "".join(elements("hostile").text)
    assert "</script><script>alert(1)</script>" in visible_text
    assert "left\\u202egnp.exe\\u2066 \\u001b[31m<!--<img" in visible_text
    assert "{{7*7}}" in visible_text


@pytest.mark.parametrize("name", ["faces", "comparison", "hostile"])
def test_every_finding_is_on_the_page(name):
    text = html.unescape(page(name))
    judged = [finding for finding in RESULTS[name]().findings if finding.tested]
    assert [finding for finding in judged if unbroken(visible(sentence(finding))) not in text] == []


def test_a_shortened_list_names_its_file():
    text = "".join(elements("many").text)
    result = RESULTS["many"]()
    classes = result.tables["classes"].num_rows
    for total, file in ((len(result.findings), "findings"), (classes, "tables/classes")):
        assert f"200 of {total} rows are shown here; all are in {file}.parquet" in text
    assert re.search(r"further findings of this kind: see findings\.parquet", text)


@pytest.mark.parametrize("name", RESULTS)
def test_verdicts_are_words_and_symbols(name):
    badges = re.findall(
        r'<span class="badge v-([a-z-]+)"><span aria-hidden="true">(.)</span> ([^<]+)</span>',
        page(name),
    )
    assert len(badges) == page(name).count('class="badge')
    titles = {verdict.value.replace(" ", "-"): title for verdict, title in VERDICT_TITLES.items()}
    titles |= {"disparity": "Difference"} if name == "comparison" else {}
    # The sentence that ranks several models is about a difference of models.
    allowed = {*titles.items(), ("disparity", "Difference")}
    limit = re.compile(r" \(under [\d.]+(\spoints)?\)$")
    shown = {(slug, limit.sub("", html.unescape(word))) for slug, _, word in badges}
    assert shown <= allowed
    assert not any(limit.search(word) for slug, _, word in badges if slug != "below-threshold")
    symbols = {slug: symbol for slug, symbol, _ in badges}
    assert len(set(symbols.values())) == len(symbols)


@pytest.mark.parametrize("name", RESULTS)
def test_page_can_be_walked_without_eyes(name):
    document = elements(name)
    assert [len(document.all(tag)) for tag in ("main", "nav", "header", "footer", "h1")] == [1] * 5
    assert document.all("html")[0]["lang"] == "en"
    assert next(a for tag, a in document.found if tag == "a")["href"] == "#main"
    levels = [int(tag[1]) for tag, _ in document.found if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(document.all("caption")) == len(document.all("table"))
    assert all(th.get("scope") in ("col", "row") for th in document.all("th"))
    ids = [attributes["id"] for _, attributes in document.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {(a["href"] or "").removeprefix("#") for a in document.all("a")}
    assert links <= set(ids)


@pytest.mark.parametrize("name", RESULTS)
def test_every_chart_has_words_and_its_data(name):
    charts = [attributes for _, attributes in elements(name).found if "data-chart" in attributes]
    data = data_of(name)
    assert [int(a["data-chart"] or "") for a in charts] == list(range(len(data["charts"])))
    assert all(len(a["aria-label"] or "") > 20 and a["role"] == "img" for a in charts)
    for chart in data["charts"]:
        assert {"layer", "mark", "facet"} & data["specs"][chart["spec"]].keys()
        assert all(0 <= index < len(data["data"]) for index in chart["data"].values())


def test_sections_without_data_are_left_out():
    def sections(name):
        return [
            attributes.get("id")
            for tag, attributes in elements(name).found
            if tag == "section" or attributes.get("class") == "section"
        ]

    assert sections("empty") == ["summary", "data", "limits", "choices", "provenance"]
    assert {"differences", "ranking", "disagreements"} <= set(sections("comparison"))
    assert {"planted", "differences", "failures"}.isdisjoint(sections("faces"))
    assert {"classes", "accuracy", "hidden"} <= set(sections("many"))


def test_limitations_name_binary_labels_and_absent_groups():
    text = "".join(elements("faces").text)
    assert "Groups are as the data label them" in text
    assert "Female or Male only" in text
    assert "Roma (n\u00a0=\u00a03)" in text
    assert "only where the target is an attribute of people" in text


def test_columns_of_a_table_show_values_by_their_format_and_type():
    columns = [
        Column("Name", "name"),
        Column("Share", "share", SHARE),
        Column("Ends", ("low", "high"), NUMBER),
        Column("Ends", ("low", "high"), SHARE),
        Column("q", "q", P_VALUE),
        Column("n", "n", NUMBER),
        Column("Twice", lambda row: 2 * row["share"], NUMBER),
    ]
    row = {"name": "a", "share": 0.25, "low": 0.1, "high": 0.5, "q": 0.00001, "n": 1200}
    table = Table.of("t", columns, [row, {**row, "share": float("nan"), "low": None}])
    assert table.rows == (
        ("a", "25.0\u00a0%", "[0.100, 0.500]", "[10.0, 50.0]", "<\u00a00.0001", "1\u202f200",
         "0.500"),
        ("a", "–", "–", "–", "<\u00a00.0001", "1\u202f200", "–"),
    )  # fmt: skip


def test_titles_of_columns_are_shown_as_they_are_and_sequences_fill_them_in_order():
    columns = [Column("#1"), Column("%Δ", format=SHARE), Column("~ note", format=CLIPPED)]
    table = Table.of("t", columns, [("a", 0.5, "long"), ("b", None, "")])
    assert [column.title for column in table.columns] == ["#1", "%Δ", "~ note"]
    assert [column.numeric for column in table.columns] == [False, True, False]
    assert [column.clipped for column in table.columns] == [False, False, True]
    assert table.rows == (("a", "50.0\u00a0%", "long"), ("b", "–", ""))


INTERNAL = re.compile(
    r"\b(?:aside|condition_number|ci_low|by_group|not estimable|below threshold)\b"
)


@pytest.mark.parametrize("name", PAGES)
def test_no_page_speaks_in_internal_words(name):
    result, kind = result_and_page(name)
    document = Elements(re.sub(r"(?s)<(code|pre)\b.*?</\1>", " ", render(result, kind)))
    text = " ".join(" ".join(document.text).split())
    assert not INTERNAL.findall(text)
    names = {f.name for f in fields(Finding)} | {*SPECS}
    assert not {word for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text) if word in names}


@pytest.mark.parametrize("name", PAGES)
def test_no_note_is_repeated(name):
    result, kind = result_and_page(name)
    notes = re.findall(r'<p class="note"[^>]*>(.+?)</p>', render(result, kind))
    alone = [
        note for note in notes if "rows are shown here" not in note and "of this kind" not in note
    ]
    assert len(alone) == len(set(alone))
