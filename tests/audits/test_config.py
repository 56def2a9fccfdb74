"""The configuration: what is read, and that nothing escapes its check."""

from pathlib import Path
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from audits.configs import EXAMPLE, outcome, values
from equipoise.audits import load_config, parse_config
from equipoise.audits.config import schema
from equipoise.audits.labels.predictions.config import SkewSizeOptions
from equipoise.audits.labels.predictions.effects import main_options
from equipoise.config.fields import Section
from equipoise.config.files import parse_yaml
from equipoise.core import ConfigError
from equipoise.discovery import KINDS
from equipoise.metrics import SPECS, CountMetric, MetricSpec, metric
from equipoise.metrics.registry import remove
from equipoise.metrics.spec import spec_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_example_reads_as_it_stands(load):
    config = load(EXAMPLE)
    assert config.data.groups == (("race",), ("race", "gender"))
    assert [*config.models] == ["deepface", "facellm"]
    assert config.data.table == Path("../shared/data/fairface3k/labels.csv")
    assert (config.resampling.seed, config.resampling.level) == (7, 0.95)
    assert config.gate[0].on == "value"
    assert config.metrics.skewsize == SkewSizeOptions(min_expected=5.0)


def test_yaml_1_1_surprises_are_text(load):
    config = load(
        EXAMPLE.replace("min: 0.6", "min: 0.6, on: lower, subject: no").replace(
            "deepface: {", "deepface: {map: {yes: on, 70: 1:30, 2024-01-01: 010}, "
        )
    )
    assert (config.gate[0].on, config.gate[0].subject) == ("lower", "no")
    mapping = config.resolved["models"]["deepface"]["map"]
    assert mapping == {"yes": "on", "70": "1:30", "2024-01-01": "010"}


def test_metrics_are_on_unless_switched_off():
    config = parse_config(
        values(metrics={"rates": False, "accuracy": True, "hit_rate": None, "skewsize": {}})
    )
    assert parse_config(config.resolved) == config
    metrics = config.metrics
    assert "rates" not in metrics.measured
    assert metrics.measured["hit_rate"] == {"k": 5}
    assert metrics.measured["accuracy"] == {}
    assert metrics.skewsize == main_options(metrics.effect_sizes)


def test_a_metric_of_the_registry_is_switched_by_its_name():
    record = MetricSpec(
        name="share_right", kinds=("predictions",), definition="A share.",
        direction="Higher: more.", reference="an example", aliases=("hits",),
    )  # fmt: skip

    @metric(record, form=CountMetric)
    def share_right(counts, tables, *, k: int = 5, mode: Literal["max", "mean"] = "max"):
        return tables.sum(axis=(1, 2)) / k

    try:
        chosen = {"k": 3, "mode": "mean"}
        for option, on in ((False, False), (True, True), ({}, True), (chosen, True)):
            config = parse_config(values(metrics={"share_right": option}))
            assert parse_config(config.resolved) == config
            assert ("share_right" in config.metrics.measured) == on
        assert config.metrics.measured["share_right"] == chosen
        assert "share_right" in parse_config(values()).metrics.measured
        for options in ({"n": 1}, {"k": 1.5}, {"mode": "most"}, "no"):
            with pytest.raises(ConfigError):
                parse_config(values(metrics={"share_right": options}))
        with pytest.raises(ConfigError):
            parse_config(values(metrics={"share_wrong": False}))
        config = parse_config(values(testing={"thresholds": {"hits": 0.1}}))
        assert config.testing.thresholds == {"share_right": 0.1}
    finally:
        remove("share_right")
    with pytest.raises(ConfigError):
        parse_config(values(metrics={"share_right": False}))


def test_a_metric_that_is_off_by_default_is_switched_on():
    record = MetricSpec(
        name="share_right", kinds=("predictions",), definition="A share.", by_default=(),
        direction="Higher: more.", reference="an example",
    )  # fmt: skip
    metric(record, form=CountMetric)(lambda counts, tables: tables.sum(axis=(1, 2)))
    try:
        assert "share_right" not in parse_config(values()).metrics.measured
        for option in (True, {}):
            assert (
                "share_right"
                in parse_config(values(metrics={"share_right": option})).metrics.measured
            )
    finally:
        remove("share_right")


def test_a_threshold_replaces_its_default_only():
    testing = parse_config(values(testing={"thresholds": {"accuracy": 0.1}})).testing
    assert testing.threshold(spec_of("accuracy")) == 0.1
    assert testing.threshold(spec_of("cramers_v")) == SPECS["cramers_v"].threshold
    assert testing.threshold(spec_of("skewsize")) is None


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
TREES = st.recursive(
    SCALARS | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(SCALARS, inner) | st.sets(st.integers()),
    max_leaves=10,
)
KEYS = ("data", "models", "metrics", "resampling", "testing", "gate", "report")


@given(st.fixed_dictionaries({"audit": SCALARS}, optional=dict.fromkeys(KEYS, TREES)) | TREES)
def test_no_value_raises_anything_else(config):
    assert outcome(parse_config, config)


YAML = st.text(alphabet="!&*<>|%@`'\"[]{}:,-?#~ \nabc019.eE+_yn\t", max_size=40)


@given(st.binary() | (st.text() | YAML).map(str.encode))
def test_no_bytes_raise_anything_else(content):
    message = outcome(lambda raw: parse_yaml(raw, "c"), content)
    assert message.startswith(("c:", "c, line", "accepted"))


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: str(path)[-30:]
)
def test_the_resolved_config_of_every_example_reads_back_unchanged(path):
    if "audit" not in yaml.safe_load(path.read_text(encoding="utf-8")):
        return
    config = load_config(path)
    again = parse_config(config.resolved)
    assert again == config
    assert again.resolved == config.resolved


def sections(base=Section):
    """Yield every section of the kinds' configurations."""
    for section in base.__subclasses__():
        yield section
        yield from sections(section)


def test_no_validator_of_a_section_hides_one_of_its_bases():
    for kind in KINDS:
        schema(kind)
    hidden = [
        f"{section.__qualname__}.{name}"
        for section in sections()
        for base in section.__mro__[1:]
        if issubclass(base, Section)
        for name in base.__pydantic_decorators__.model_validators
        if name in vars(section)
    ]
    assert len({*sections()}) > 100
    assert hidden == []
