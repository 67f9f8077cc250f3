"""Findings: what a careful reader would ask about the evidence."""
