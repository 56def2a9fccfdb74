"""`equipoise augment`: its configuration, the images that it names, and its run."""
