"""Plain Python behind the widgets: no Qt, so that it is tested without a window."""
