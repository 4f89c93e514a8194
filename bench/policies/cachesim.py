"""cachesim.py FILE WARM REFERENCES PLAYS: plays policies of libcachesim on an
oracleGeneral trace. play.py runs it, by a Python that has the package.

PLAYS is JSON: [[name, buffers, settings], ...]. Prints for each its misses in the
first WARM references, and in the others."""

import json
import sys


def main():
    import libcachesim

    path, warm, references = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for name, buffers, settings in json.loads(sys.argv[4]):
        cache = getattr(libcachesim, name)(buffers, **settings)
        reader = libcachesim.TraceReader(
            path, trace_type=libcachesim.TraceType.ORACLE_GENERAL_TRACE,
            reader_init_params=libcachesim.ReaderInitParam(
                ignore_obj_size=True))
        # the object miss ratio of a part; the cache keeps what it has
        first = cache.process_trace(reader, 0, warm)[0] * warm if warm else 0
        rest = cache.process_trace(reader, warm, -1)[0] * (references - warm)
        print(round(first), round(rest), flush=True)


if __name__ == "__main__":
    main()
