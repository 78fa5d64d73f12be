"""``python -m eigenoptions.cli``."""

import sys

from eigenoptions.cli import main

sys.exit(main())
