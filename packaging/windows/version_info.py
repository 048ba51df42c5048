"""The version resource of the Windows programs: what Explorer shows as a file's properties. Read by PyInstaller's recipe."""

from __future__ import annotations

import re

_TEMPLATE = """\
VSVersionInfo(
  ffi=FixedFileInfo(
    filevers={numbers},
    prodvers={numbers},
    mask=0x3F,
    flags=0x0,
    OS=0x40004,
    fileType=0x1,
    subtype=0x0,
    date=(0, 0)
  ),
  kids=[
    StringFileInfo([
      StringTable('040904B0', [
        StringStruct('CompanyName', 'GrowBox contributors'),
        StringStruct('FileDescription', 'GrowBox'),
        StringStruct('FileVersion', '{version}'),
        StringStruct('InternalName', 'GrowBox'),
        StringStruct('LegalCopyright', 'MIT licence; see LICENSE and NOTICES.txt'),
        StringStruct('ProductName', 'GrowBox'),
        StringStruct('ProductVersion', '{version}')
      ])
    ]),
    VarFileInfo([VarStruct('Translation', [0x0409, 1200])])
  ]
)
"""


def version_info(version: str) -> str:
    """The resource as text, in the form PyInstaller reads.

    Args:
        version: GrowBox's version. Windows counts in four numbers; a suffix such as `rc1` is kept in the words only.
    """
    numbers = [int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3]]
    return _TEMPLATE.format(numbers=(*numbers, 0, 0, 0, 0)[:4], version=version)
