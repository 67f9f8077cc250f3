"""The evaluation record: its fields, the combinations that contradict each other, and the faults."""
