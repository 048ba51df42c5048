"""The window: the only Qt code. Speaks `growbox_app.api` and nothing deeper."""
