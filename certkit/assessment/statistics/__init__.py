"""Estimates, intervals and seeded resampling."""
