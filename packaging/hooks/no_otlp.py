"""Run-time hook: stands in for the OTLP exporter, which chromadb imports at top level and never uses with telemetry off.

It lets grpc and protobuf stay out of the bundle (18 MB, and 100 ms at each start of the vector host).
"""

import sys
import types

_NAME = "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"


class OTLPSpanExporter:
    """Refuses to exist: GrowBox sends nothing anywhere."""

    def __init__(self, *_arguments: object, **_options: object) -> None:
        raise RuntimeError("telemetry is not part of this build")


_parts = _NAME.split(".")
for _depth in range(2, len(_parts) + 1):
    _module = types.ModuleType(".".join(_parts[:_depth]))
    _module.__path__ = []
    sys.modules.setdefault(_module.__name__, _module)
sys.modules[_NAME].OTLPSpanExporter = OTLPSpanExporter  # type: ignore[attr-defined]
