"""Rest: fatigue and idle work, pure logic."""
