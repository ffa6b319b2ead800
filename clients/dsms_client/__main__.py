"""``python -m dsms_client`` is the `dsms` command."""

import sys

from dsms_client.cli import main

if __name__ == "__main__":  # who imports it, wants to know where it is: for spark-submit
    sys.exit(main())
