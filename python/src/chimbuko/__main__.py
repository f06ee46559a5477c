"""python -m chimbuko: the program."""

import os
import sys

from chimbuko._program import ChimbukoError, program

try:
    path = program()
except ChimbukoError as e:
    sys.exit(f"chimbuko: {e}")
os.execv(path, [path, *sys.argv[1:]])
