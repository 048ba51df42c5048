"""The shadow repositories behind the checkpoints: what a project's files were before each call that changed something."""
