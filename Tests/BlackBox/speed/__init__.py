"""What things cost, measured in one run."""
