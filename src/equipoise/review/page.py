"""The page on which people label images: one file that loads nothing."""

import json
from collections.abc import Sequence

from equipoise.report.rendering import asset, content_policy, script_json, templates
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

    Returns
    -------
    str
        HTML with keyboard input that saves answers as JSON or CSV. Its content security
        policy allows nothing from outside; texts are escaped.
    """
    from markupsafe import Markup

    captions = [visible(label) for label in labels] or [""] * len(keys)
    data = {
        "question": question.name,
        "answers": question.answers,
        "images": [*zip(keys, pictures, captions, strict=True)],
        "settled": SETTLED,
    }
    style = asset("equipoise.review", "label.css")
    program = asset("equipoise.review", "label.js")
    template = templates("equipoise.review", visible).get_template("label.html.j2")
    return template.render(
        question=question.text,
        labeller=labeller,
        longest=LONGEST_NAME,
        # The package's own files and JSON with its markup escaped; no text of the user's is here.
        style=Markup(style),  # noqa: S704
        program=Markup(program),  # noqa: S704
        data=Markup(script_json(json.dumps(data, ensure_ascii=False))),  # noqa: S704
        policy=content_policy(style, program),
    )
