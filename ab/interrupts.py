"""Ctrl-C, SIGTERM, a closed terminal: the run ends at the next point where it
waits anyway, which cuts off no statement. Nothing interrupts the putting
back."""

import signal
import time

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


# Times in pgbench's log are the time of day of its start, plus what has passed
# since then on a monotonic clock. So are those of now().
_SHIFT = time.time() - time.monotonic()


def now():
    return time.monotonic() + _SHIFT


class Interrupted(BaseException):
    """Not an Exception: no handler of errors must catch it."""

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
            # nohup, or a shell's &, may have it ignored
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
        # before check(): a signal in between must not be slept over
        self.waiting = True
        try:
            self.check()
            time.sleep(max(0.0, seconds))
        finally:
            self.waiting = False

    def sleep_until(self, moment):
        """moment: of now()"""
        self.sleep(moment - now())

    def close(self):
        """From now on, signals have no effect."""
        self.closed = True
