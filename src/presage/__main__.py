"""`python -m presage`."""

import sys

from presage.cli.main import main

sys.exit(main())
