"""``python -m sessions_lib.cli``: the same as ``forkbook``."""

from sessions_lib.cli import main

main()
