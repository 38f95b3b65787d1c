"""Where sessions are kept: sessions, their manager, merge and checks; behind them a folder of JSONL files."""
