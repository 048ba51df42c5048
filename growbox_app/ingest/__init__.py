"""Ingest: files and folders become documents of the memory.

`walk.py` finds files, a child process (`reader_process.py`) reads them and says where to cut, `ingestion.py` compares with what is known
and hands the memory what is new.
"""
