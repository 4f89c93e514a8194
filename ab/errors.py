class UserError(Exception):
    """An error that the user can correct: shown as one line, without a
    traceback."""
