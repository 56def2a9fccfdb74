"""The page on which people label images: one file that loads nothing."""

import json
from collections.abc import Mapping, Sequence

from equipoise.report.rendering import (
    asset,
    content_policy,
    page_style,
    script_json,
    templates,
)
from equipoise.report.text import visible
from equipoise.review.labellers import LONGEST_NAME, SETTLED
from equipoise.review.questions import Question


def label_page(
    question: Question,
    keys: Sequence[str],
    pictures: Sequence[str],
    labels: Sequence[str] = (),
    *,
    labeller: str = "",
    answered: Mapping[str, int] | None = None,
) -> str:
    """Return a page that asks a question about images.

    Parameters
    ----------
    question : Question
    keys : sequence of n str
        Names of the images that tell nothing, in the order to show.
    pictures : sequence of n str
        Data URLs.
    labels : sequence of n str, optional
        Label of each image, where the question is about it.
    labeller : str
        Fixed name; by default labellers enter their own.
    answered : mapping of str to int, optional
        Images of the page that each labeller has answered before.

    Returns
    -------
    str
        HTML with keyboard input that shows progress and saves answers as JSON or CSV. Its
        content security policy allows nothing from outside; texts are escaped.
    """
    from markupsafe import Markup

    captions = [visible(label) for label in labels] or [""] * len(keys)
    data = {
        "question": question.name,
        "answers": question.answers,
        "images": [*zip(keys, pictures, captions, strict=True)],
        "settled": SETTLED,
    }
    style = page_style("equipoise.review", "label.css")
    program = asset("equipoise.review", "label.js")
    template = templates("equipoise.review", visible).get_template("label.html.j2")
    return template.render(
        question=question.text,
        labeller=labeller,
        n_images=len(keys),
        answered=answered or {},
        longest=LONGEST_NAME,
        # The package's own files and JSON with its markup escaped; no text of the user's is here.
        style=Markup(style),  # noqa: S704
        program=Markup(program),  # noqa: S704
        data=Markup(script_json(json.dumps(data, ensure_ascii=False))),  # noqa: S704
        policy=content_policy(style, program),
    )
