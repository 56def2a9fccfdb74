"""Images ranked by query: their scores, what is compared, and what is measured."""
