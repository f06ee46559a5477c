"""Tell what ADIOS2 itself reads from a dataset: read.py DATASET.

Prints one JSON object for each step,

    {"step": 0, "vars": {name: {"type", "shape", "blocks": [{"start", "count", "hash", "min", "max"} or {"value"}]}},
     "attrs": {name: value}}

with all attributes known so far; hash is the SHA-256 of the little-endian bytes, value the text of a single value,
min and max are those that the metadata hold.
"""

import hashlib
import json
import sys

import numpy as np
import adios2.bindings as bindings

INTEGERS = {f"{u}int{n}_t": f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
DTYPES = {**INTEGERS, "float": "float32", "double": "float64"}


def numbers(text):
    """The numbers of a text such as "4,6" or "{4, 6}"."""
    return [int(n) for n in text.replace("{", "").replace("}", "").replace(" ", "").split(",") if n]


def read_variable(io, engine, name):
    var = io.InquireVariable(name)
    kind = var.Type()
    blocks = []
    for i, info in enumerate(engine.BlocksInfo(name, engine.CurrentStep())):
        if kind == "string":
            blocks.append({"value": engine.Get(var, bindings.Mode.Sync)})
            continue
        count, start = numbers(info.get("Count", "")), numbers(info.get("Start", ""))
        if var.SingleValue():
            data = np.zeros(1, dtype=DTYPES[kind])
            engine.Get(var, data, bindings.Mode.Sync)
            blocks.append({"value": str(data[0])})
            continue
        data = np.zeros(count, dtype=DTYPES[kind])
        var.SetBlockSelection(i)
        engine.Get(var, data, bindings.Mode.Sync)
        blocks.append({"start": start, "count": count, "hash": hashlib.sha256(data.tobytes()).hexdigest(),
                       "min": info["Min"], "max": info["Max"]})
    return {"type": INTEGERS.get(kind, kind), "shape": list(var.Shape()), "blocks": blocks}


def main(path):
    adios = bindings.ADIOS()
    io = adios.DeclareIO("reading")
    io.SetEngine("BP4")
    engine = io.Open(path, bindings.Mode.Read)
    while engine.BeginStep() == bindings.StepStatus.OK:
        attrs = {name: io.InquireAttribute(name).DataString()[0] for name in io.AvailableAttributes()}
        line = {"step": engine.CurrentStep(), "attrs": attrs,
                "vars": {name: read_variable(io, engine, name) for name in io.AvailableVariables()}}
        print(json.dumps(line), flush=True)
        engine.EndStep()
    engine.Close()


main(sys.argv[1])
