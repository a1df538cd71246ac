"""``python -m flaot`` is the ``flaot`` command."""

from flaot.cli.main import main

main()
