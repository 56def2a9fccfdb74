"""How much more similar images of one group are to a concept than those of another."""
