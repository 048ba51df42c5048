"""The engine process and the application's end of it."""
