"""What only Stats draws: figures and charts."""
