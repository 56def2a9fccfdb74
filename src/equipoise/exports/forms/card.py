"""A section of a model card, in the Markdown of the Hugging Face Hub."""

from equipoise.exports import Files, Form, Run
from equipoise.report.card import card


def write(run: Run) -> Files:
    """Return the section."""
    return {"model-card.md": card(run.result)}


FORM = Form("a section of a model card", write)
