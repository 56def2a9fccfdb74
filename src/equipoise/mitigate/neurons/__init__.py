"""Components of a model that respond to a group: units, heads, features."""
