"""One file per command, which imports its code when it runs."""
