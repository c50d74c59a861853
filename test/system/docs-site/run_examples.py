"""Runs each program whose path it reads from standard input, and writes its outcome as a line of JSON.

Loading requests takes longer than most examples, so all of them share this process.
"""

import contextlib
import io
import json
import os
import runpy
import sys
import traceback

for line in sys.stdin:
    path = line.strip()
    os.chdir(os.path.dirname(path))
    output = io.StringIO()
    errors = ""
    with contextlib.redirect_stdout(output):
        try:
            runpy.run_path(path, run_name="__main__")
        except Exception:
            errors = traceback.format_exc()
    outcome = {"code": 1 if errors else 0, "out": output.getvalue(), "err": errors}
    print(json.dumps(outcome), flush=True)
