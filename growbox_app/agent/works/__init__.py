"""The known kinds of work, one class each; `growbox_app/agent/stages.py` has the table."""
