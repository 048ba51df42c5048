"""All disk access of the memory engine; the only place with chromadb and diskcache."""
