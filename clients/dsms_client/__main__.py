"""``python -m dsms_client`` is the `dsms` command."""

import sys

from dsms_client.cli import main

sys.exit(main())
