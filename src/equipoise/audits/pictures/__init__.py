"""What the pictures of an audit are: a table, a folder, or a data set in a format of its own."""
