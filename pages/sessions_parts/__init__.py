"""What Sessions draws: list, filters, one session, imports, trash."""
