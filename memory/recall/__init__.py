"""Retrieval: generators of requests over the stores."""
