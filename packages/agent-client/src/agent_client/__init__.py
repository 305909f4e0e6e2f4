"""A typed client of an agent server, whose streams survive a lost connection."""
