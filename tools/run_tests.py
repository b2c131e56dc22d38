"""All tests, with pytest; what a dying worker process took with it is run once more.

The C libraries of real clients run inside the test processes, and one of their assertions ends the whole process. The test that ran
there at that moment has neither passed nor failed: it is run again, alone, and that counts. A test that fails by itself does not
get a second chance.
"""

import re
import subprocess
import sys

CRASHED = re.compile(r"worker '\w+' crashed while running '([^']+)'")
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+)$", re.MULTILINE)


def run(arguments: list[str]) -> tuple[int, str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    printed = []
    while some := process.stdout.read(80):
        sys.stdout.write(some)
        sys.stdout.flush()
        printed.append(some)
    return process.wait(), "".join(printed)


def main() -> int:
    status, printed = run(sys.argv[1:])
    crashed = sorted(set(CRASHED.findall(printed)))
    if status == 0 or not crashed:
        return status
    if not all(failure.startswith(tuple(crashed)) for failure in FAILED.findall(printed)):
        return status
    print(f"a worker process died while running {', '.join(crashed)}: once more, alone", flush=True)
    status, _ = run(["-q", *crashed])
    return status


if __name__ == "__main__":
    sys.exit(main())
