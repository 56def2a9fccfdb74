"""The audit of activations: whether a model looks at the same region in images of each group."""
