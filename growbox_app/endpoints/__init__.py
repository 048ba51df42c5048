"""Chat models behind a server that speaks the OpenAI protocol: llama-server, vLLM, LM Studio, a vendor."""
