"""Against Vondra's table once more, with the table that maps pages to buffers
simulated, too. An experiment of several minutes, not a part of the validation:
see README.md."""

from . import validate_scans


class Comparison(validate_scans.Comparison):
    name = "fit_mapped"
    how = {"mapping": True, "seeds": (1,)}
