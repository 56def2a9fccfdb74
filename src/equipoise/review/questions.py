"""Questions about images, and their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from equipoise.core import ConfigError

UNSURE = "can't tell"
"""Answer that counts as no label."""
# Keys 1 to 9.
_MOST_ANSWERS = 9


@dataclass(frozen=True)
class Question:
    """A question about each image.

    Attributes
    ----------
    name : str
        Name that labels are stored under: that of `QUESTIONS` or the question's text, and the
        subject and outcome of its images.
    text : str
        Text that labellers read; {attribute} stands for the group attributes.
    answers : tuple of str
        At most nine, one a key; none for the classes of the target.
    counted : str
        Answer to estimate the share of, by group.
    names_label : bool
        Whether labellers see the image's label, because they judge it.
    sees : mapping of str to mapping of str to str
        By attribute, the value that an answer says people see, see `FormConfig`.
    """

    name: str
    text: str
    answers: tuple[str, ...]
    counted: str
    names_label: bool = False
    sees: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def _build_yes_no(
    name: str, text: str, *, unsure: bool = True, names_label: bool = False
) -> Question:
    answers = ("yes", "no", UNSURE) if unsure else ("yes", "no")
    return Question(name, text, answers, "no", names_label)


_MEDIA = ("photograph", "painting", "drawing", "rendering", "black and white", "sign", "other")
QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        question.name: question
        for question in (
            _build_yes_no("visible", "Can you see the {attribute}?", unsure=False),
            _build_yes_no("good", "Is the image good?"),
            Question("medium", "Which medium is it?", (*_MEDIA, UNSURE), "photograph"),
            _build_yes_no("right", "Is the label right?", names_label=True),
            _build_yes_no("person", "Does the picture show a person?"),
            Question("class", "Which label is right?", (), ""),
        )
    }
)
"""Built-in questions by name."""


def stored_name(question: str, subject: str = "", outcome: str = "") -> str:
    """Return the name that stores a question's labels about some of the images."""
    return ": ".join(filter(None, (question, subject, outcome)))


def find_question(
    name: str,
    *,
    answers: Sequence[str] = (),
    classes: Sequence[str] = (),
    attribute: str = "attribute",
    counted: str = "",
    stored: str = "",
    sees: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Question:
    """Return a built-in question, or one with a text and answers of its own.

    Parameters
    ----------
    name : str
        Name of a built-in question, or the text of another.
    answers : sequence of str
        Of another question; two to nine.
    classes : sequence of str
        Classes of the target, the answers of `class`.
    attribute : str
        Group attributes, in words.
    counted : str
        Answer to estimate the share of; by default "no" or the first answer.
    stored : str
        Name of its labels, see `stored_name`; by default `name`.
    sees : mapping of str to mapping of str to str
        Of another question: by attribute, the value that an answer says people see.

    Raises
    ------
    ConfigError
        If the question is unknown and has no answers, or has too many.
    """
    question = QUESTIONS.get(name)
    if question is None:
        if not answers:
            names = ", ".join(QUESTIONS)
            raise ConfigError(
                f"question {name!r}: no answers; expected one of {names}, or answers of its own. "
                "To do: add --answer for each answer"
            )
        question = Question(name, name, tuple(dict.fromkeys(answers)), answers[0], sees=sees)
    elif answers:
        raise ConfigError(
            f"question {name!r}: has answers already. To do: leave --answer out, or ask in other "
            "words"
        )
    if not question.answers:
        question = replace(
            question, answers=(*classes, UNSURE), counted=classes[0] if classes else ""
        )
    if not 2 <= len(question.answers) <= _MOST_ANSWERS:
        raise ConfigError(
            f"question {name!r}: different answers: {len(question.answers)}; expected 2 to "
            f"{_MOST_ANSWERS}, one a key"
        )
    if counted and counted not in question.answers:
        raise ConfigError(
            f"question {name!r}: no answer {counted!r}; expected one of "
            f"{', '.join(question.answers)}"
        )
    text = question.text.replace("{attribute}", attribute)
    return replace(question, name=stored or name, text=text, counted=counted or question.counted)
