"""How a folder is asked fast: a disposable SQLite catalog that answers what ``scan`` answers."""
