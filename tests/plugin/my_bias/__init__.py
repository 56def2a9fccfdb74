"""What the documentation adds to equipoise, as a package of its own."""
