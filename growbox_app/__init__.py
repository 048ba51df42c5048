"""The application core: composition, agent loop, executors, engine process, models, settings. No Qt."""

VERSION = "0.1.0"
