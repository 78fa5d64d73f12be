"""``python -m eigenoptions.cli``, the same as ``python -m eigenoptions``."""

import sys

from eigenoptions.cli import main

sys.exit(main())
