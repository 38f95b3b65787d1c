"""What only the Trials page draws."""
