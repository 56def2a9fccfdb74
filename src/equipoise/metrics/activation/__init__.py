"""Which share of a map of activations lies in a region of the image."""
