"""The record of a run: what its fields mean, and how strictly it is read."""
