"""What several kinds of audit measure with."""
