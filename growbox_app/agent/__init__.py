"""The agent: one loop, the prompt of a turn, tool calls."""
