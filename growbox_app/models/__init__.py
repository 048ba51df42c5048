"""Models: the catalogue, the files on this machine, and how they get here. No llama.cpp, no event loop.

Trouble is a `ProblemError` with the fields model, file, path, host and reason, and for `DISK_FULL` need and free.
"""
