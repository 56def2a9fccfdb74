"""Pictures of people from the data set PAIRS, and three published models that look at them."""

from equipoise.planted.people.project import FOLDER, compare_classes, open_pictures

__all__ = ["FOLDER", "compare_classes", "open_pictures"]
