"""Train the planted models whose weights ship with the package."""
