"""CRC-32C: the known values, over every kind of buffer, without the price of the package's own start."""

import subprocess
import sys

import pytest

from oncelog.records.crc32c import crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_known_values(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected
    assert crc32c(bytearray(data)) == expected
    assert crc32c(memoryview(bytearray(b"x" + data))[1:]) == expected


def test_importing_it_does_not_bring_the_package_s_command_line() -> None:
    program = (
        "import oncelog.records.validation, sys;"
        "print([name for name in ('argparse', 'importlib.metadata', 'cramjam') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    assert ran.stdout.strip() == "[]"


def test_the_package_itself_still_imports_beside_it() -> None:
    import crc32c as package

    assert package.crc32c(b"123456789") == 0xE3069283
