"""The user's tools: servers that bring some, and what was learned about all of them."""
