"""How a folder of JSONL files keeps sessions: lines, metadata, locks, trash; ``scan`` answers by reading all."""
