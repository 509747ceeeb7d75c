"""What programs of several folders are made of."""
