"""What checks of images reject, by group."""
