"""Scripts for work on the project; no part of the wheel."""
