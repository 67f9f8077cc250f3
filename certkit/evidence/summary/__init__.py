"""From records to integer sums: the only thing that an assessment reads."""
