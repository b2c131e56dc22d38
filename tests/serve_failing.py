"""`oncelog serve` on a disk that takes the process with it, for crashes in the middle of what a log does with its files.

    ONCELOG_DISK_FAIL_POINT='rename|remove ^__transaction_state-0/ 3' python tests/serve_failing.py --listen ... --data-dir ...

The process dies by SIGKILL before the third rename or removal whose path matches; "create" is the opening of a file that is not
there. Without the variable it is the broker that the
command starts. For places that have a name in the code there is ONCELOG_FAIL_POINT, which works here, too.
"""

import os
import re
import signal
from pathlib import Path

from tests import serve_tracking
from tests.disks import WrappedDisk


class KillingDisk(WrappedDisk):
    def __init__(self, root: str | Path) -> None:
        super().__init__(root)
        operations, pattern, count = os.environ.get("ONCELOG_DISK_FAIL_POINT", "none . 0").split(" ")
        self._operations = frozenset(operations.split("|"))
        self._pattern = re.compile(pattern)
        self._left = int(count)

    def before(self, operation: str, path: str) -> None:
        if operation == "open" and not self.inner.exists(path):
            operation = "create"
        if operation in self._operations and self._pattern.search(path):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve_tracking.main(KillingDisk)
