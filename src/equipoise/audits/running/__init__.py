"""From models and images to the tables that a kind of audit measures: run once, kept, read."""
