"""Where a model looks: class activation maps, and the share of a map inside a region."""
