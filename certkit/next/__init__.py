"""The rebuilt rooms, before the program switches to them."""
