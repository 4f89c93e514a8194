"""Ctrl-C, SIGTERM, a closed terminal: the run ends at the next point where it waits
anyway, so that no statement is cut off in the middle; and nothing interrupts the
putting back."""

import signal
import time

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


# pgbench's log has the time of day of its start plus what has passed since then on a
# clock that nobody sets. So has this, begun a moment before.
_SHIFT = time.time() - time.monotonic()


def now():
    return time.monotonic() + _SHIFT


class Interrupted(BaseException):
    """Not an Exception: no handler of errors is to take it for one."""

    def __init__(self, signum):
        super().__init__(signum)
        self.signum = signum


class Interrupts:
    def __init__(self):
        self.signum = None
        self.waiting = False
        self.closed = False

    def install(self):
        for signum in SIGNALS:
            # nohup, and a script's background, have had their reasons
            if signal.getsignal(signum) != signal.SIG_IGN:
                signal.signal(signum, self._note)
        # Stopped, it would leave the server switched.
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)

    def _note(self, signum, frame):
        self.signum = self.signum or signum
        if self.waiting and not self.closed:
            raise Interrupted(self.signum)

    def check(self):
        if self.signum is not None and not self.closed:
            raise Interrupted(self.signum)

    def sleep(self, seconds):
        # first this, so that a signal in between is not slept over
        self.waiting = True
        try:
            self.check()
            time.sleep(max(0.0, seconds))
        finally:
            self.waiting = False

    def sleep_until(self, moment):
        """Of now()."""
        self.sleep(moment - now())

    def close(self):
        """From now on, signals are noted only."""
        self.closed = True
