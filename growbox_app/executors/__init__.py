"""What the agent can do: one executor per ability, one registry."""
