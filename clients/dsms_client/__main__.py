"""``python -m dsms_client`` is the `dsms` command."""

import sys

from dsms_client.cli import main

if __name__ == "__main__":  # it is only imported to find its path, for spark-submit
    sys.exit(main())
