"""How other frameworks write here: one module a framework, each an extra of the package.

``openai_agents`` is a session of the OpenAI Agents SDK, ``claude_agent`` a session store of the Claude Agent SDK, and
``recording`` writes down what plain ``openai`` code sends and is answered.

Does not show, fork or compare: what was written is a session like any other.
"""
