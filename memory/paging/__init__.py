"""Paging: pure logic of the context region and its index queue."""
