"""How a session or a comparison is given away: one module a format, and the redaction that all of them go through."""
