"""The data of docs/scaling.md, and where it comes from."""

import json

from bench.lib import report
from bench.lib.paths import BENCH, ROOT, BenchError

from . import fit, own_report

DOCS = ROOT / "docs"            # has scaling.md, and the rest in scaling/
OWN = BENCH / "sim" / "own"     # rounds of `own`


def read(docs, name):
    path = docs / "scaling" / f"{name}.json"
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise BenchError(f"cannot read {path}: {error.strerror}")
    except ValueError as error:
        raise BenchError(f"{path} is not JSON: {error}")


def put(path, text):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror}")


def put_data(docs, name, data):
    """An object a line, more or less: small, and still to be compared."""
    text = json.dumps(data, separators=(",", ":")).replace("},{", "},\n{")
    put(docs / "scaling" / f"{name}.json", text + "\n")


def gather(docs):
    """Results of validation and of the own machine: build/'s, if they are newer
    than what docs/ has (which may have come with a newer checkout), else docs/'s.
    What belongs together comes from the same place."""
    gather_validation(docs)
    gather_own(docs)


def newer(path, name):
    """Is that result of build/ newer than what docs/ has?"""
    kept = DOCS / "scaling" / f"{name}.json"
    return path.exists() and (not kept.exists() or
                              path.stat().st_mtime > kept.stat().st_mtime)


def keep(docs, *names):
    report.progress("as they are in docs/scaling: " + ", ".join(names))
    for name in names:
        put_data(docs, name, read(DOCS, name))


def load(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"cannot read {path}: {error}")


def gather_validation(docs):
    """And the numbers that it was made with. A fit that is newer than it is of
    another validation, of a part only or interrupted."""
    result = BENCH / "sim.json"
    if (newer(result, "validation") and fit.RESULT.exists()
            and fit.RESULT.stat().st_mtime <= result.stat().st_mtime):
        put_data(docs, "validation", load(result))
        put_data(docs, "fitted", load(fit.RESULT)["numbers"])
    elif (DOCS / "scaling" / "validation.json").exists():
        keep(docs, "validation", "fitted")
    else:
        raise BenchError(f"there is no {result}, or it is not of the newest"
                         " fit: run validate first")


def own_samples(own):
    """How many samples there were, and were left out."""
    found = {row["side"]: round(row["median"]) for row in own
             if row["metric"] == "samples"}
    missing = {"all", own_report.TWO, own_report.WITHOUT,
               *own_report.LEFT_OUT} - found.keys()
    if missing:
        raise BenchError("results of the own machine do not say how many"
                         f" samples or cells are {', '.join(sorted(missing))}:"
                         " they are an older program's; run sim/run own"
                         " rounds again")
    return found


def gather_own(docs):
    """With every sample, and what was predicted, round by round."""
    result = BENCH / "sim_own.json"
    if newer(result, "own"):
        own, (predicted, measured) = load(result), own_files()
        if own_samples(own)["all"] != sum(len(one["samples"])
                                          for one in measured):
            raise BenchError(f"{result} is not of the rounds that are in"
                             f" {OWN}: run own rounds again")
        put_data(docs, "own", own)
        put_data(docs, "own-predicted", predicted)
        put_data(docs, "own-measured", measured)
    elif (DOCS / "scaling" / "own.json").exists():
        keep(docs, "own", "own-predicted", "own-measured")
    else:
        put_data(docs, "own", [])       # may be measured later, elsewhere


def own_files():
    """(predictions, measurements) of all rounds."""
    predicted = []
    measured = []
    for path in sorted(OWN.glob("*-measured.json"),
                       key=lambda path: int(path.name.split("-")[0])):
        number = int(path.name.split("-")[0])
        predicted.append(load(path.with_name(f"{number}-predicted.json")))
        measured.append(rounded(number, load(path)))
        if measured[-1]["predicted"] != predicted[-1]["date"]:
            raise BenchError(f"{path} is not measured after the prediction"
                             " beside it: run own rounds again")
    return predicted, measured


def rounded(number, found):
    """A round's samples, as docs/ has them."""
    return {"round": number, "date": found["date"],
            "predicted": found["predicted"], "samples": [
                {"configuration": one["configuration"], "side": one["side"],
                 "ns": round(one["ns"], 2),
                 "predicted": (None if one["predicted"] is None else
                               round(one["predicted"], 2)),
                 "state": one["state"],
                 "turns_ps": [round(look[0]) for look in one["looks"]
                              if look is not None]}
                for one in found["samples"]]}
