"""A server that lies, one lie at a time, and whether the checker names each."""
