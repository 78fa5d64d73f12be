"""``python -m eigenoptions``: the command line."""

import sys

from eigenoptions.cli import main

sys.exit(main())
