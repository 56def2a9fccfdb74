"""Audits of questions: numbers by hand, planted answers, what is asked, and unusual input."""

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from PIL import Image

import equipoise
from chat_server import completion, serving
from conclusions import worlds
from equipoise import audits
from equipoise.audits.labels.questions.orders import order_name, orders_of
from equipoise.core import Aggregate, ConfigError, DataError, Verdict
from equipoise.metrics.spec import spec_of_finding
from equipoise.report import GateRule, gate
from equipoise.report.summary import statements_of
from equipoise.report.words import sentence

ITEMS = pl.DataFrame({
    "id": ["a", "b", "c", "d"], "gender": ["man", "woman", "man", "woman"],
    "job": ["pilot", "pilot", "chef", "chef"], "other": ["nurse", "nurse", "baker", "baker"],
    "truth": ["pilot", "B", None, "no idea"],
})  # fmt: skip
ANSWERS = {  # by item and order: as shown, first and second
    ("a", "ABC"): "A", ("a", "BCA"): "pilot", ("b", "ABC"): "(B)", ("b", "BCA"): "A",
    ("c", "ABC"): "A or B", ("c", "BCA"): "I can't help with that.", ("d", "ABC"): "no idea",
    ("d", "BCA"): "A",
}  # fmt: skip


def responses(answers=ANSWERS, **columns):
    rows = [{"id": item, "order": order, "answer": text} for (item, order), text in answers.items()]
    return pl.DataFrame(rows).with_columns(**columns)


def config(items=ITEMS, table=None, model=None, metrics=None, **data):
    table = responses() if table is None else table
    return {
        "audit": "questions",
        "data": {"table": items, "id": "id", "question": "Is it a {job}?", "groups": ["gender"],
                 "options": ["{job}", "{other}", "no idea"], "outcome": "{job}",
                 "undecided": "no idea", "right": "{truth}", "min_group_size": 1} | data,
        "models": {"m": model or {"table": table, "answer": "answer", "order": "order"}},
        "resampling": {"replicates": 20, "permutations": 20}, **(metrics or {}),
    }  # fmt: skip


def run(values):
    return audits.run(audits.parse_config(values))


def value_of(result, metric, aggregate=Aggregate.VALUE):
    (finding,) = (
        finding for finding in result.findings
        if (finding.metric, finding.aggregate, finding.subject) == (metric, aggregate, "")
    )  # fmt: skip
    return finding.value


def test_numbers_of_a_table_by_hand():
    result = run(config())
    states = {(row["item"], row["order"]): row["state"]
              for row in result.tables["responses"].to_pylist()}  # fmt: skip
    assert states == {
        ("a", "ABC"): "answered", ("a", "BCA"): "answered", ("b", "ABC"): "answered",
        ("b", "BCA"): "answered", ("c", "ABC"): "ambiguous", ("c", "BCA"): "refused",
        ("d", "ABC"): "undecided", ("d", "BCA"): "answered",
    }  # fmt: skip
    # "A" of BCA is the second option as listed.
    assert value_of(result, "outcome_share") == pytest.approx((1 + 0 + 0) / 3)
    assert value_of(result, "order_inconsistency") == pytest.approx(1 / 3)
    # Of d no answer is right but "no idea"; c has no right option.
    assert value_of(result, "accuracy") == pytest.approx((1 + 1 + 0.5) / 3)
    assert value_of(result, "unsound_rate") == 0.5
    # One response is refused, another names two options.
    assert value_of(result, "unanswered_rate") == 0.125
    assert value_of(result, "unresolved_rate") == 0.125


def test_who_does_not_know_chooses_the_undecided_option_where_there_is_one():
    answers = ANSWERS | {("a", "ABC"): "not sure", ("a", "BCA"): "pilot or nurse, hard to say",
                         ("b", "ABC"): "dunno"}  # fmt: skip
    model = {"table": responses(answers), "answer": "answer", "order": "order",
             "unknown": ["dunno"]}  # fmt: skip
    with_option = run(config(model=model)).tables["responses"].to_pylist()
    rows = [(row["state"], row["option"]) for row in with_option[:3]]
    assert rows == [("undecided", "C"), ("ambiguous", None), ("undecided", "C")]
    without = run(config(model=model, undecided=None, right=None)).tables["responses"].to_pylist()
    assert [row["state"] for row in without[:3]] == ["unknown", "ambiguous", "unknown"]


@pytest.mark.parametrize(("orders", "counts"), [(["ABC"], True), (["ABC", "BCA"], False)])
def test_items_are_counted_only_where_each_has_one_answer(orders, counts):
    ambiguous = ANSWERS | {("c", "BCA"): ANSWERS["c", "ABC"]}
    answers = {place: text for place, text in ambiguous.items() if place[1] in orders}
    finding = next(
        finding for finding in run(config(table=responses(answers))).findings
        if finding.metric == "unresolved_rate" and finding.aggregate is Aggregate.DIFFERENCE
    )  # fmt: skip
    of_men = next(part for part in finding.by_group if part.group == "man")
    assert (of_men.value, of_men.n) == (0.5, 2)
    assert ("1 of 2" in sentence(finding)) is counts


def test_a_gate_on_refusals_passes_a_model_that_always_chooses():
    answered = dict.fromkeys(ANSWERS, "A")
    result = run(config(table=responses(answered)))
    names = ("unanswered_rate", "unresolved_rate", "refused_rate", "unknown_rate", "empty_rate")
    rules = [GateRule(name, of="difference", max=0.0) for name in names]
    rules += [GateRule(name, max=0.0) for name in names]
    rules += [GateRule(name, verdict="disparity") for name in names]
    assert {check.outcome for check in gate(result, rules).checks} == {"passed"}
    gaps = [f for f in result.findings if f.metric in names and f.aggregate is not Aggregate.VALUE]
    assert len(gaps) == len(names)
    assert all(finding.ci_high > 0.0 and not finding.tested for finding in gaps)


def test_a_gate_on_refusals_judges_a_model_that_lacks_answers_for_no_other_reason():
    refusal = "I'm sorry, but I can't help with that."
    answered = dict.fromkeys(ANSWERS, "A") | {next(iter(ANSWERS)): refusal}
    result = run(config(table=responses(answered)))
    (check,) = gate(result, [GateRule("refused_rate", max=0.0)]).checks
    assert check.outcome == "breached"
    assert check.finding.value == value_of(result, "unanswered_rate") > 0.0


def test_every_metric_of_items_with_right_options_takes_a_rule_of_a_gate():
    metrics = {finding.metric for finding in run(config()).findings}
    assert {"accuracy", "unsound_rate", "refused_rate"} <= metrics
    rules = [{"metric": metric, "max": 1.0} for metric in sorted(metrics)]
    parsed = audits.parse_config(config() | {"gate": rules})
    assert [rule.metric for rule in parsed.gate] == sorted(metrics)


def test_probabilities_count_in_place_of_answers():
    table = pl.DataFrame({
        "id": ["a", "a", "b", "b"], "order": ["AB", "BA"] * 2,
        "first": [0.9, 0.6, 0.5, None], "second": [0.1, 0.4, 0.5, None],
        "said": ["A", "B", "B", "A"],
    })  # fmt: skip
    items = ITEMS.head(2)
    options = {"options": ["{job}", "{other}"], "undecided": None, "right": None}
    model = {"table": table, "probabilities": ["first", "second"], "order": "order"}
    result = run(config(items, model=model, **options))
    rows = result.tables["responses"].to_pylist()
    assert [row["state"] for row in rows] == ["answered", "answered", "ambiguous", "missing"]
    assert value_of(result, "outcome_share") == 0.75
    both = run(config(items, model=model | {"answer": "said"}, **options))
    # Where there are no probabilities, the answer counts: "A" of BA is the second option.
    assert value_of(both, "outcome_share") == pytest.approx((0.75 + (0.5 + 0.0) / 2) / 2)


@pytest.mark.parametrize("n_options", range(2, 11))
def test_orders_put_each_option_at_each_position_equally_often(n_options):
    orders = np.array(orders_of(n_options))
    assert len({*map(tuple, orders.tolist())}) == len(orders)
    assert order_name(tuple(orders[0])) == "ABCDEFGHIJ"[:n_options]
    for position in orders.T:
        assert len({*np.bincount(position, minlength=n_options).tolist()}) == 1
    assert len(orders) == math.factorial(n_options) if n_options < 4 else n_options


def test_options_may_be_fewer_of_some_items():
    items = ITEMS.with_columns(other=pl.Series(["nurse", None, "baker", "baker"]))
    table = responses({("a", "CAB"): "B", ("b", "CA"): "B", ("c", "ABC"): "A", ("d", "ABC"): "C"})
    rows = run(config(items, table, right=None)).tables["responses"].to_pylist()
    assert [(row["item"], row["option"], row["position"]) for row in rows] == [
        ("a", "A", 2), ("b", "A", 2), ("c", "A", 1), ("d", "C", 3),
    ]  # fmt: skip


def test_responses_of_a_run_read_back_as_a_table():
    first = run(config())
    table = pl.from_arrow(first.tables["responses"])
    model = {"table": table, "answer": "answer", "order": "order", "id": "item"}
    again = run(config(model=model))
    assert again.tables["responses"] == first.tables["responses"]
    assert [finding.value for finding in again.findings] == pytest.approx(
        [finding.value for finding in first.findings], nan_ok=True
    )


def verdicts(result, *metrics):
    return {finding.verdict for finding in result.findings if finding.metric in metrics}


def test_a_model_that_answers_by_position_is_told_so_first_and_shows_no_disparity():
    result = run(worlds.questions(gap=0.2, inconsistency=1.0))
    lead = result.conclusions[0]
    assert (lead.metric, lead.verdict, lead.size) == ("order_inconsistency", Verdict.DETECTED, 1.0)
    assert not any(finding.verdict is Verdict.DISPARITY for finding in result.findings)
    assert statements_of(result)[0].badge.word == "By position"
    content = verdicts(result, "outcome_share", "paired_outcome_gap")
    assert content == {Verdict.NONE}
    (gap,) = (finding for finding in result.findings if finding.metric == "paired_outcome_gap")
    assert "position" in gap.reason
    assert any("position" in note for note in result.manifest.warnings)
    order = {finding.subject: finding.value for finding in result.findings
             if finding.metric == "variance_share"}["order"]  # fmt: skip
    assert order == 1.0


@pytest.mark.parametrize(
    "rule",
    [
        {"metric": "paired_outcome_gap", "max": 1.0},
        {"metric": "outcome_share", "max": 1.0},
        {"metric": "outcome_share", "of": "difference", "max": 1.0},
        {"verdict": "disparity"},
    ],
)
def test_a_gate_on_answers_by_position_does_not_pass(rule):
    by_position = run(worlds.questions(gap=0.0, inconsistency=1.0))
    outcome = gate(by_position, [GateRule(**rule)])
    assert {check.outcome for check in outcome.unchecked} == {"not judged"}
    assert not outcome.passed
    assert gate(run(worlds.questions(gap=0.0)), [GateRule(**rule)]).passed


def test_a_gap_within_scenes_is_found_and_its_model_reads_the_options():
    result = run(worlds.questions(gap=0.2, inconsistency=0.1))
    lead = result.conclusions[0]
    assert (lead.metric, lead.verdict, lead.other) == (
        "paired_outcome_gap",
        Verdict.DISPARITY,
        "man",
    )
    assert verdicts(result, "order_inconsistency") == {Verdict.NONE}


def test_groups_are_compared_over_all_items_where_units_have_one_group():
    values = worlds.questions(gap=0.3)
    values["data"]["unit"] = None
    result = run(values)
    assert result.conclusions[0].metric == "outcome_share"
    assert "paired_outcome_gap" not in {finding.metric for finding in result.findings}
    items = values["data"]["table"]
    values["data"] |= {"table": items.with_columns(scene=items["scene"] + items["gender"]),
                       "unit": "scene"}  # fmt: skip
    assert "paired_outcome_gap" not in {finding.metric for finding in run(values).findings}


def test_a_model_that_refuses_everything_has_a_result():
    table = responses(dict.fromkeys(ANSWERS, "I can't help with that."))
    result = run(config(table=table))
    assert value_of(result, "unanswered_rate") == 1.0
    assert value_of(result, "unsound_rate") == 0.0
    assert math.isnan(value_of(result, "outcome_share"))


@pytest.mark.parametrize(
    ("outcome", "name"),
    [("no idea", "“no idea”"), ("{job}", "the job option"), ("A", "the outcome option")],
)
def test_sentences_name_the_outcome(outcome, name):
    result = run(config(outcome=outcome))
    gap = next(finding for finding in result.findings if finding.metric == "outcome_share"
               and finding.aggregate is Aggregate.DIFFERENCE)  # fmt: skip
    assert spec_of_finding(gap).group_label == f"share of {name}"


def test_one_order_alone_is_a_warning():
    table = responses().filter(pl.col("order") == "ABC")
    assert any("position" in note for note in run(config(table=table)).manifest.warnings)
    assert not run(config()).manifest.warnings


@pytest.mark.parametrize(
    ("data", "row", "column"),
    [
        ({"outcome": "{gender}"}, 1, "gender"),
        ({"right": "{gender}"}, 1, "gender"),
        ({"options": ["{job}", "pilot"], "undecided": None, "right": None}, 1, "job"),
        ({"options": ["{truth}", "{job}"], "undecided": None, "right": None}, 1, "truth, job"),
        ({"question": "{truth}", "right": None}, 3, "truth"),
        ({"decidable": "gender"}, 1, "gender"),
        ({"undecided": "nobody knows"}, None, None),
    ],
)
def test_wrong_items_are_an_error_with_their_row(data, row, column):
    with pytest.raises(DataError) as raised:
        run(config(**data))
    assert (raised.value.row, raised.value.column) == (row, column)


@pytest.mark.parametrize(
    ("table", "model", "column"),
    [
        (responses({("a", "AB"): "A"}), {"order": "order"}, "order"),
        (responses({("a", ""): "A"}), {"order": "order"}, "order"),
        (responses(), {}, None),
        (responses(wording=pl.lit("2")), {"order": "order", "wording": "wording"}, "wording"),
        (responses(p=pl.lit(0.5), r=pl.lit(0.5), q=pl.lit(None, pl.Float64)),
         {"order": "order", "probabilities": ["p", "r", "q"]}, "p, r, q"),
    ],
)  # fmt: skip
def test_wrong_responses_are_an_error_with_their_column(table, model, column):
    with pytest.raises(DataError) as raised:
        run(config(max_unmatched=1.0, model={"table": table, "answer": "answer"} | model))
    assert raised.value.column == column


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"question": "Is it {?"}, "question"),
        ({"question": []}, "question"),
        ({"options": ["one"]}, "options"),
        ({"options": [*"abcdefghijk"]}, "options"),
        ({"prompt": "{question}"}, "prompt"),
        ({"outcome": ""}, "outcome"),
        ({"question": ["Who?", "Which?"]}, "wording"),
        ({"outcome": "{jobs}"}, "jobs"),
    ],
)
def test_wrong_keys_are_an_error_that_names_them(change, key):
    with pytest.raises((ConfigError, DataError), match=key):
        run(config(**change))


@pytest.fixture
def server():
    with serving() as running:
        yield running


def pictures(folder, n=12):
    """Pictures of men and women in scenes; the first pixel has the item's number."""
    (folder / "pictures").mkdir()
    rows = []
    for place in range(2 * n):
        pixels = np.full((6, 6, 3), 200 * (place % 2), np.uint8)
        pixels[0, 0] = place
        Image.fromarray(pixels).save(folder / "pictures" / f"{place}.png")
        rows.append({"id": f"i{place:02d}", "file": f"{place}.png", "scene": str(place // 2),
                     "gender": "man" if place % 2 else "woman"})  # fmt: skip
    pl.DataFrame(rows).write_csv(folder / "items.csv")


def served(server, **model):
    return {
        "audit": "questions",
        "data": {"images": {"table": "items.csv", "id": "id", "path": "file", "root": "pictures"},
                 "question": {"short": "Pilot or nurse?", "long": "Who is this?"},
                 "options": ["pilot", "nurse"], "outcome": "pilot", "groups": ["gender"],
                 "unit": "scene", "min_group_size": 5},
        "models": {"m": {"model": f"served:{server.url}#tiny", **model}},
        "resampling": {"replicates": 20, "permutations": 20},
    }  # fmt: skip


def chosen(server, share):
    """Reply with the letter of the pilot, whose probability depends on the picture."""

    def reply(picture, number):
        text = server.requests[number]["messages"][0]["content"][1]["text"]
        probability = share[picture[3, 3, 0] > 100]
        first = probability if "A. pilot" in text else 1.0 - probability
        body = completion("A" if first > 0.5 else "B")
        alternatives = [{"token": token, "logprob": math.log(number)}
                        for token, number in (("A", first), ("B", 1.0 - first))]  # fmt: skip
        body["choices"][0]["logprobs"] = {"content": [{"top_logprobs": alternatives}]}
        return 200, body, {}

    return reply


def test_a_served_model_is_asked_in_every_order_and_wording_once(server, tmp_path):
    pictures(tmp_path)
    server.reply = chosen(server, {False: 0.6, True: 0.9})
    values = audits.parse_config(served(server, service={"concurrency": 1}))
    assert sum(run.get("to_do") for run in audits.plan(values, base=tmp_path).runs) == 96
    result = audits.run(values, base=tmp_path)
    asked = {(body["messages"][0]["content"][1]["text"], int(server.of(body)[0, 0, 0]))
             for body in server.requests}  # fmt: skip
    assert len(server.requests) == len(asked) == 2 * 2 * 24
    assert ("Who is this?\nA. nurse\nB. pilot\nAnswer with the letter of one option.", 0) in asked
    assert value_of(result, "outcome_share") == pytest.approx(0.75)
    assert value_of(result, "paired_outcome_gap", Aggregate.DIFFERENCE) == pytest.approx(0.3)
    again = audits.run(values, base=tmp_path)
    assert len(server.requests) == 96
    assert again.tables["responses"] == result.tables["responses"]
    assert sum(run.get("to_do") for run in audits.plan(values, base=tmp_path).runs) == 0


def test_letters_that_begin_a_word_and_servers_without_probabilities(server, tmp_path):
    pictures(tmp_path)
    reply = chosen(server, {False: 0.6, True: 0.9})

    def words(picture, number):
        status, body, headers = reply(picture, number)
        body["choices"][0]["message"]["content"] = "A nurse"
        return status, body, headers

    server.reply = words
    values = audits.parse_config(served(server, service={"concurrency": 1}))
    result = audits.run(values, base=tmp_path)
    # Where "A" isn't the nurse, the letter and the answer disagree.
    rows = result.tables["responses"].to_pylist()
    assert {row["option"] for row in rows} == {"B"}
    assert {row["probability_B"] is None for row in rows if row["order"] == "AB"} == {True}
    server.requests.clear()
    plain = audits.parse_config(served(server, letters=False, service={"concurrency": 1}))
    rows = audits.run(plain, base=tmp_path).tables["responses"].to_pylist()
    assert not any("logprobs" in body for body in server.requests)
    assert {row["probability_A"] for row in rows} == {None}


def test_answers_that_are_cut_are_failures_by_group(server, tmp_path):
    pictures(tmp_path)
    server.reply = lambda picture, _: (
        200, completion("It is", reason="length" if picture[0, 0, 0] == 3 else "stop"), {}
    )  # fmt: skip
    values = served(server) | {"extraction": {"max_failures": 0.1}}
    result = audits.run(audits.parse_config(values), base=tmp_path)
    states = {(row["group"], row["state"]): row["count"]
              for row in result.tables["response_states"].to_pylist()}  # fmt: skip
    assert states["man", "cut"] == 4
    assert states["woman", "cut"] == 0
    assert states["man", "unresolved"] == 44
    failures = result.tables["failures"].to_pylist()
    assert {row["group"]: row["n"] for row in failures} == {"": 1, "man": 1, "woman": 0}


def with_budget(server, budget):
    """A configuration of 96 requests, of which each costs 0.01."""
    prices = {"tiny": {"request": 0.01}}
    values = served(server, service={"prices": prices, "budget": budget})
    values["data"]["min_group_size"] = 2
    return audits.parse_config(values)


def counts_of_states(result):
    return Counter(row["state"] for row in result.tables["responses"].to_pylist())


def test_a_budget_ends_between_items_and_leaves_a_part_of_one_out(server, tmp_path):
    pictures(tmp_path)
    server.reply = lambda *_: (200, completion("A"), {})
    result = audits.run(with_budget(server, 0.5), base=tmp_path)
    assert len(server.requests) == 50
    per_item = Counter(int(body["picture"][0, 0, 0]) for body in server.requests)
    assert sorted(per_item.values()) == [2, *[4] * 12]
    states = counts_of_states(result)
    assert states["incomplete"] == 2
    assert states["budget"] == 46
    assert states["answered"] == 48
    assert value_of(result, "outcome_share") == 0.5
    by_group = [row for row in result.tables["response_states"].to_pylist()
                if row["state"] == "incomplete"]  # fmt: skip
    assert {row["group"] for row in by_group} == {"man", "woman"}
    assert sum(row["count"] for row in by_group) == 2
    whole = audits.run(with_budget(server, 1.0), base=tmp_path)
    assert len(server.requests) == 96
    assert counts_of_states(whole) == {"answered": 96}


def test_a_failed_request_leaves_its_item_out(server, tmp_path):
    pictures(tmp_path)

    def reply(picture, number):
        cut = (
            picture[0, 0, 0] == 3
            and "A. nurse" in (server.requests[number]["messages"][0]["content"][1]["text"])
        )
        return 200, completion("A", reason="length" if cut else "stop"), {}

    server.reply = reply
    values = served(server) | {"extraction": {"max_failures": 0.1}}
    result = audits.run(audits.parse_config(values), base=tmp_path)
    assert counts_of_states(result) == {"answered": 92, "cut": 2, "incomplete": 2}
    assert value_of(result, "outcome_share") == 0.5


def test_a_plan_estimates_all_orders_at_once_and_warns_of_the_budget(server, tmp_path):
    pictures(tmp_path)
    plan = audits.plan(with_budget(server, 0.5), base=tmp_path)
    assert sum(run["requests"] for run in plan.runs) == 96
    assert sum(run["cost"] for run in plan.runs) == pytest.approx(0.96)
    estimates = [note for note in plan.notes if "requests with" in note]
    assert len(estimates) == 1
    assert "about 96 requests" in estimates[0]
    assert "about 0.9600" in estimates[0]
    assert any("Warning" in note and "0.9600" in note for note in plan.notes)
    enough = audits.plan(with_budget(server, 1.0), base=tmp_path)
    assert not any("Warning" in note for note in enough.notes)
    assert server.requests == []


def compared(*worlds_of_models):
    """Compare models of worlds with the same items."""
    values = worlds_of_models[0]
    values["models"] = {
        f"m{place}": world["models"]["m"] for place, world in enumerate(worlds_of_models)
    }
    return equipoise.compare(run(values))


def test_models_are_compared_item_by_item():
    result = compared(worlds.questions(gap=0.3), worlds.questions(gap=0.0))
    (gap,) = (finding for finding in result.findings
              if finding.aggregate is Aggregate.DIFFERENCE)  # fmt: skip
    assert (gap.metric, gap.groups, gap.verdict) == ("outcome_share", "gender", Verdict.DISPARITY)
    assert gap.value == pytest.approx(-0.3, abs=0.1)
    assert gap.ci_low <= -0.3 <= gap.ci_high
    alike = [finding for finding in result.findings if finding.metric == "order_inconsistency"]
    assert {finding.value for finding in alike} == {0.0}


def test_gaps_of_models_that_answer_by_position_are_not_compared():
    result = compared(worlds.questions(gap=0.3), worlds.questions(gap=0.3, inconsistency=1.0))
    assert {finding.metric for finding in result.findings} == {
        "order_inconsistency", "unanswered_rate", "unresolved_rate",
    }  # fmt: skip
    (everyone,) = (finding for finding in result.findings
                   if finding.metric == "order_inconsistency" and not finding.groups)  # fmt: skip
    assert everyone.value == pytest.approx(0.9, abs=0.06)


def test_a_model_without_a_usable_answer_leads_with_that():
    answers = dict.fromkeys(ANSWERS, "red and green of the")
    result = run(config(table=responses(answers)))
    (statement,) = statements_of(result)
    assert statement.badge.word == "Few answers"
    assert statement.text.replace("\xa0", " ") == (
        "No usable answer of m in 100.0 % of the responses to 4 items. Nothing can be compared."
    )
    (finding,) = (finding for finding in result.findings if finding.metric == "unusable_share")
    assert (finding.value, finding.n, finding.verdict) == (1.0, 4, Verdict.DETECTED)
    # Both orders were asked.
    (warning,) = (note for note in result.manifest.warnings if "order" in note)
    assert "No question has a usable answer in two orders" in warning


def test_orders_are_those_that_were_asked():
    one_order = {place: text for place, text in ANSWERS.items() if place[1] == "ABC"}
    result = run(config(table=responses(one_order)))
    assert any("Every question has one order" in note for note in result.manifest.warnings)
    assert not any(finding.metric == "unusable_share" for finding in result.findings)


def test_each_share_of_variance_names_its_source():
    letters = {"a": "AC", "b": "AC", "c": "BA", "d": "BC"}
    answers = {(item, order): letters[item][place] for item in letters
               for place, order in enumerate(("ABC", "BCA"))}  # fmt: skip
    result = run(config(table=responses(answers)))
    texts = {f.subject: sentence(f) for f in result.findings if f.metric == "variance_share"}
    assert len({*texts.values()}) == len(texts) > 2
    starts = {
        "": "Wording and order make ",
        "picture": "The picture makes ",
        "rest": "Noise makes ",
    }
    for source, start in starts.items():
        assert texts[source].startswith(start), texts
        assert "of the variance of answers of m" in texts[source]
