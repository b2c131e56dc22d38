"""`python -m oncelog`, the same as `oncelog`."""

import sys

from oncelog.cli.main import main

sys.exit(main())
