"""The picture, and what happens without matplotlib."""

import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from ab import picture, plot
from ab.errors import UserError

NAMES = ["stock", "_batched", "a$b$"]
# as long as they get
TITLE = ("pgbench -f orders.sql@3 -f customers.sql@1 -M extended, 64 clients,"
         " -R 12000, database customers; 1999 blocks of 120 s slices, the"
         " first 60 s of each thrown away; seed 16777215")


def row(side, ratio, verdict):
    return {"metric": "tps", "side": side, "ratio": ratio, "verdict": verdict,
            "ratio_low": ratio * .9, "ratio_high": ratio * 1.1}


class TestPicture(unittest.TestCase):
    def setUp(self):
        if importlib.util.find_spec("matplotlib") is None:
            self.skipTest("no matplotlib")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, ratio=1.2):
        """Returns the figure."""
        kept = []
        draw = plot.draw

        def keep(*arguments):
            kept.append(draw(*arguments))
            return kept[0]

        slices = [SimpleNamespace(setting=name, begin=i, end=i + 1, used=i > 0,
                                  values={"tps": 100 + i})
                  for i, name in enumerate(NAMES)]
        rows = [row("_batched", ratio, "better"),
                row("a$b$", 1, "no difference shown")]
        with mock.patch.object(plot, "draw", keep), \
                mock.patch.dict("os.environ", MPLCONFIGDIR=str(self.folder)):
            picture.check(self.folder)
            picture.write(self.folder, rows, NAMES, slices, TITLE)
        return kept[0]

    def test_files(self):
        self.write()
        self.assertTrue((self.folder / "ab.png").read_bytes().startswith(
            b"\x89PNG\r\n\x1a\n"))
        self.assertRegex((self.folder / "ab.svg").read_text(),
                         r"(?s)<svg .*</svg>")

    def test_nothing_is_cut_off(self):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        for ratio in (1.2, 40):
            figure = self.write(ratio)
            width, height = figure.bbox.width, figure.bbox.height
            title = figure._suptitle
            self.assertEqual(title.get_text().replace("\n", " "), TITLE)
            renderer = FigureCanvasAgg(figure).get_renderer()
            figure.draw_without_rendering()
            for part in (title, *figure.axes,
                         *(axes.get_legend() for axes in figure.axes)):
                box = part.get_tightbbox(renderer)
                self.assertGreaterEqual(box.x0, 0, part)
                self.assertGreaterEqual(box.y0, 0, part)
                self.assertLessEqual(box.x1, width, part)
                self.assertLessEqual(box.y1, height, part)


class TestWithoutMatplotlib(unittest.TestCase):
    def test_says_so(self):
        with mock.patch.dict(sys.modules, {"matplotlib": None}), \
                mock.patch.dict("os.environ"), \
                self.assertRaisesRegex(UserError, "python3-matplotlib.*"
                                                  "--no-picture"):
            picture.check("/nonexistent")


if __name__ == "__main__":
    unittest.main()
