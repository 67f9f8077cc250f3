"""Simulated evidence, drawn from a seed and marked as simulated."""
