"""What only Compare draws: map, grid, prompt box, verdict."""
