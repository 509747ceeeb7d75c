"""Builds of other commits together with that of this tree."""
