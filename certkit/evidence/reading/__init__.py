"""Reading record files: strictly line by line, and fast in columns, with the same result."""
