"""Words that messages, notes and reports share."""

from equipoise.core.wording import images, shortened


def test_a_long_text_is_cut_and_says_so() -> None:
    assert shortened("a nurse") == "a nurse"
    assert shortened("x" * 60) == "x" * 60
    cut = shortened("a person who " * 9)
    assert cut.startswith("a person who a person who")
    assert cut.endswith("…")
    assert len(cut) <= 60


def test_one_image_has_and_two_have() -> None:
    assert images(1, "have no age", "has no age") == "1 image has no age"
    assert images(2, "have no age", "has no age") == "2 images have no age"
