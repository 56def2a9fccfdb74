"""Training images whose faces are mixed or covered, and their effect on a classifier."""
