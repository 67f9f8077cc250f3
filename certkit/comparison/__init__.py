"""Two summaries side by side: two agents compared, or one agent over time."""
