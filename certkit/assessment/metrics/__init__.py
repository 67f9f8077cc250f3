"""The metrics of the papers: what each one is, and its value from a summary."""
