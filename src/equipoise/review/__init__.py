"""What people say of the images of a run: samples, labels, and what follows from them."""

from equipoise.review.labels import (
    SETTLED,
    consensus,
    disagreements,
    key_of,
    merge_labels,
    read_answers,
    read_labels,
    write_labels,
)
from equipoise.review.page import label_page
from equipoise.review.questions import QUESTIONS, Question, find_question
from equipoise.review.results import Results, conclude
from equipoise.review.sampling import (
    Draw,
    RunImages,
    draw_sample,
    known_answers,
    load_images,
    note_draw,
    read_draws,
)
from equipoise.review.thumbnails import find_pictures, thumbnails

__all__ = [
    "QUESTIONS",
    "SETTLED",
    "Draw",
    "Question",
    "Results",
    "RunImages",
    "conclude",
    "consensus",
    "disagreements",
    "draw_sample",
    "find_pictures",
    "find_question",
    "key_of",
    "known_answers",
    "label_page",
    "load_images",
    "merge_labels",
    "note_draw",
    "read_answers",
    "read_draws",
    "read_labels",
    "thumbnails",
    "write_labels",
]
