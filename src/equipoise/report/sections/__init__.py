"""The sections of the page: each looks at a result and gives blocks, or None without data."""
