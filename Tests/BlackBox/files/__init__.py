"""Somebody's SQLite file, edited by SQL, with the command beside it."""
