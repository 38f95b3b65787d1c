"""How does a PostgreSQL database keep a team's sessions? ``store`` answers; psycopg comes with the extra ``team``."""
