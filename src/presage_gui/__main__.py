"""`python -m presage_gui`: the same as `presage-gui`."""

from __future__ import annotations

import sys

from presage_gui.cli.main import main

sys.exit(main())
