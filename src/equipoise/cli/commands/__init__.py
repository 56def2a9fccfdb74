"""One file per command; each imports what it runs when it runs."""
