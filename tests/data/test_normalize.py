"""Free text to labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.data import Normalization


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Doctor", "doctor"),
        ("  doctor\t\n", "doctor"),
        ("software   engineer", "software engineer"),
        ("The person is a doctor.", "doctor"),
        ("This is an image of the “Doctor”!", "doctor"),
        ("a", "a"),
        ("the", "the"),
        ("This is", "this is"),
        ("...", "..."),
        ("", ""),
        ("70+", "70+"),
        ("**-5%**", "-5%"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "caf\u00e9"),
        ("thesis", "thesis"),
        ("answer", "answer"),
        ("Answer: B", "b"),
    ],
)
def test_the_default_pipeline(text, label):
    assert Normalization()(text) == label


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"case_fold": False}, "The Physician"),
        ({"whitespace": False}, " physician"),
        ({"punctuation": ""}, "physician."),
        ({"articles": ()}, "the physician"),
        ({"leading_phrases": ("the",)}, "physician"),
        ({"synonyms": {"A Physician!": "Doctor"}}, "Doctor"),
    ],
)
def test_each_step_can_be_declared(options, label):
    assert Normalization(**options)("The  Physician.") == label


def test_the_version_of_the_default_is_pinned():
    # When this changes, results of old runs no longer mean the same: raise PIPELINE and say so.
    assert Normalization().version == "normalisation 3.a7ad8db9"


@given(st.text())
def test_normal_forms_are_stable_and_never_empty(text):
    steps = Normalization()
    assert steps(steps(text)) == steps(text)
    assert bool(steps(text)) == bool(text)
