"""A local page for images behind findings, labels of people, and causes."""

from equipoise.review.forms import FormConfig, ask, read_form
from equipoise.review.labellers import SETTLED
from equipoise.review.labels import (
    add_labels,
    consensus,
    count_by_labeller,
    disagreements,
    key_of,
    merge_labels,
    read_answers,
    read_labels,
)
from equipoise.review.page import label_page
from equipoise.review.questions import QUESTIONS, Question, find_question, stored_name
from equipoise.review.results import Results, conclude
from equipoise.review.sampling import (
    Draw,
    RunImages,
    draw_sample,
    load_images,
    note_draw,
    read_draws,
    shown_labels,
    strata_in_words,
)
from equipoise.review.seeing import ANSWERS, VALUES, keep_results
from equipoise.review.thumbnails import find_pictures, thumbnails

__all__ = [
    "ANSWERS",
    "QUESTIONS",
    "SETTLED",
    "VALUES",
    "Draw",
    "FormConfig",
    "Question",
    "Results",
    "RunImages",
    "add_labels",
    "ask",
    "conclude",
    "consensus",
    "count_by_labeller",
    "disagreements",
    "draw_sample",
    "find_pictures",
    "find_question",
    "keep_results",
    "key_of",
    "label_page",
    "load_images",
    "merge_labels",
    "note_draw",
    "read_answers",
    "read_draws",
    "read_form",
    "read_labels",
    "shown_labels",
    "stored_name",
    "strata_in_words",
    "thumbnails",
]
