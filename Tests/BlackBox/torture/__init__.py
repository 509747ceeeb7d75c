"""Real processes that are killed, cut off, stopped and starved."""
