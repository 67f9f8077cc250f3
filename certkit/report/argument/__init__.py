"""The argument of a safety case: what supports the use of an agent, and what challenges it."""
