"""pg_sweep_ab, as a package or as a zipapp."""

import signal

# Until all modules are read, Ctrl-C is a plain end.
if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from ab import main  # noqa: E402

main.run()
