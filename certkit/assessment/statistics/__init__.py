"""Estimates, intervals, posteriors and variance components."""
