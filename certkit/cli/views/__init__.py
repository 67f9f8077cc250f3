"""Results as people read them on a terminal."""
