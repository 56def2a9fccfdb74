"""Quality of sets of images: against reference images, within sets, and in the eyes of people."""
