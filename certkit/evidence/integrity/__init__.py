"""Commitment integrity in a bundle: what lies under ``integrity/``, read strictly and reduced to integers."""
