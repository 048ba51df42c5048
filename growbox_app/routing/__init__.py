"""Which tools the model sees, finds and is advised against: ranking, experience, and the memory of what works where."""
