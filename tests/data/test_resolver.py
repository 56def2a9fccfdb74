"""Which class a text names, and which texts name none for sure."""

import pytest

from equipoise.data.resolver import (
    AMBIGUOUS,
    NEUTRAL,
    UNRESOLVED,
    Resolver,
    mask_group_words,
    neutral_words,
)

RESOLVER = Resolver(
    ("doctor", "nurse", "head nurse", "fire fighter", "70+"),
    {"physician": "doctor", "he looks after patients": "nurse"},
    neutral_words(["Female", "Black"]),
)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("He is a doctor.", "doctor"),
        ("she’s a Physician!", "doctor"),
        ("Perhaps the head nurse, by her coat", "head nurse"),
        ("a fire-fighter", "fire fighter"),
        ("firefighter", UNRESOLVED),
        ("Age: 70+", "70+"),
        ("doctoral student", UNRESOLVED),
        ("She looks after patients", "nurse"),
        ("doctor or nurse", AMBIGUOUS),
        ("nurse or head nurse", AMBIGUOUS),
        ("not a doctor", UNRESOLVED),
        ("isn't quite a doctor", UNRESOLVED),
        ("No badge is visible here, so a doctor", "doctor"),
        ("not a nurse but a doctor", UNRESOLVED),
        ("", UNRESOLVED),
    ],
)
def test_whole_words_anywhere_the_longest_first(text, label):
    assert RESOLVER(text) == label


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I cannot determine the occupation", True),
        ("As a language model, I can’t tell", True),
        ("It is impossible to say.", True),
        ("This cannot be determined from the image.", True),
        ("I can't tell for sure, perhaps a nurse", False),
        ("a doctor", False),
    ],
)
def test_refusals(text, refuses):
    assert RESOLVER.refuses(text) is refuses
    if refuses:
        assert RESOLVER(text) == UNRESOLVED


def test_class_names_are_never_masked():
    people = Resolver(("man", "woman"), {"lady": "woman"}, NEUTRAL)
    assert [people(text) for text in ("A man.", "a lady", "he")] == ["man", "woman", UNRESOLVED]


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("He is a doctor", "person is a doctor"),
        ("She's a male nurse", "person is a nurse"),
        ("The woman's coat", "the person's coat"),
        ("This is a man.", "This is a man."),
        ("a Doctor", "a Doctor"),
    ],
)
def test_texts_without_words_of_a_group(text, neutral):
    assert mask_group_words(text, NEUTRAL) == neutral
