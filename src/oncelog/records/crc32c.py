"""CRC-32C (Castagnoli), the checksum of every record batch, through the `crc32c` package's C code.

The package's `__init__` reads its own version through `importlib.metadata` and brings a command line: tens of milliseconds that
`oncelog serve` would pay before its first request. Its C module needs none of that, so it is loaded from its file. Should a
later release lay its files out differently, the package is imported the ordinary way. docs/decisions/0009-record-libraries.md.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder

from oncelog.model.bytes_like import BytesLike


def _load() -> Callable[[BytesLike], int]:
    package = PathFinder.find_spec("crc32c")
    if package is not None and package.submodule_search_locations is not None:
        extension = PathFinder.find_spec("_crc32c", list(package.submodule_search_locations))
        if extension is not None and extension.loader is not None:
            module = extension.loader.create_module(extension)
            if module is not None:
                extension.loader.exec_module(module)
                function: Callable[[BytesLike], int] = module.crc32c
                return function
    import crc32c

    return crc32c.crc32c


crc32c = _load()
