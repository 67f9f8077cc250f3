"""The rebuilt rooms, tested and unused until one commit puts them in the place of the old ones."""
