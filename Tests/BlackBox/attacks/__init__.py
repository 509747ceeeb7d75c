"""Callers of ill will, and callers who cost the others too much."""
