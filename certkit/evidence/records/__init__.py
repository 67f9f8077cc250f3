"""The evaluation record: its fields, what they may not say together, and the faults of those that do."""
