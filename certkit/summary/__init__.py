"""From records to integer sums."""
