"""Tests of the assessment room, on summaries built by hand."""
