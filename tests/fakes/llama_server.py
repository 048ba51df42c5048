"""llama-cpp-python's own server with the CPU backend of our build: `python -m tests.fakes.llama_server VARIANT --model FILE …`.

Our llama.cpp links no CPU backend in; the engine loads the one that was proved on this machine, and so must whoever else loads a model.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from growbox_app.engine.host import load_variant

    load_variant(sys.argv.pop(1))
    from llama_cpp.server.__main__ import main

    main()
