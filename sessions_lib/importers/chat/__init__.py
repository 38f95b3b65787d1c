"""Files of chat messages, in any wrapping: ours, OpenAI's, and the AI SDK's, Anthropic's and Gemini's as those."""
