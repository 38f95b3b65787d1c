"""Exports of chat programs, whose conversations are trees: claude.ai, Open WebUI, LibreChat."""
