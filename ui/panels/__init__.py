"""Widgets. Each shows a view model or a snapshot and reports what the user did by signals."""
