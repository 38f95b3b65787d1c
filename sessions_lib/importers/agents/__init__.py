"""Agents' own records: Gemini CLI, Qwen Code, opencode, GitHub Copilot, the OpenAI Agents SDK, trajectories."""
