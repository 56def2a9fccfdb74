"""Every rule on images has a section of the config."""

from typing import get_args

from equipoise import data
from equipoise.audits.config_images import RuleConfig


def sections():
    union = get_args(RuleConfig)[0]
    return {get_args(one.model_fields["rule"].annotation)[0]: one for one in get_args(union)}


def test_every_rule_of_the_data_has_a_name():
    rules = {
        name
        for name in data.__all__
        if name in ("hall_captions", "hall_boxes", "continents", "income_bands")
        or name.startswith("leave_out_")
        or (isinstance(found := getattr(data, name), type) and hasattr(found, "description"))
    }
    snake = {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in one).lstrip("_") for one in rules
    }
    # Boxes are cut by the key `crop`, and sizes of boxes are no rule.
    assert snake - {"crop_boxes", "box_size", "rule"} == {*sections()}
