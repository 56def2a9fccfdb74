"""Configurations to check, and what the check says of them."""

import pytest

from equipoise.audits import parse_config
from equipoise.core import ConfigError

EXAMPLE = """\
audit: predictions
data:
  table: ../shared/data/fairface3k/labels.csv
  id: image_id
  target: gender
  groups: [race, [race, gender]]
models:
  deepface: {table: ../shared/data/fairface3k/deepface.csv, prediction: gender}
  facellm: {table: ../shared/data/fairface3k/facellm.csv, prediction: gender}
resampling: {method: bootstrap, replicates: 1000, seed: 7}
gate:
  - {metric: accuracy, of: worst_group, min: 0.6}
"""


def message(load, content):
    with pytest.raises(ConfigError) as raised:
        load(content)
    return str(raised.value)


def outcome(check, value):
    """What the check says; anything but a ConfigError passes through and fails the test."""
    try:
        check(value)
    except ConfigError as error:
        return str(error)
    return "accepted"


def values(**changes):
    base = {
        "audit": "predictions",
        "data": {"table": "labels.csv", "id": "id", "target": "y", "groups": ["g"]},
        "models": {"m": {"table": "m.csv", "prediction": "p"}},
    }
    return base | changes


def with_model(**keys):
    return values(models={"m": {"table": "m.csv", "prediction": "p"} | keys})


def with_data(**keys):
    return values(data=values()["data"] | keys)


def refusal(config):
    with pytest.raises(ConfigError) as raised:
        parse_config(config, source="c")
    return str(raised.value)
