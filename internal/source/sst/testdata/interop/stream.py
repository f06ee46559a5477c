#!/usr/bin/env python3
"""Write a stream with the SST of ADIOS2 itself, with a record of what was written; or read one.

    stream.py write SHAPE PATH TRUTH.jsonl [option=value...]
    stream.py relay DATASET PATH [option=value...]
    stream.py read PATH [option=value...]

`write` puts the steps of SHAPE (a key of SHAPES) into the stream PATH, whose contact file is PATH.sst. The truth file
gets one JSON line for each step before it ends, and a last one after Close. Each step is also printed, after it ended.
Options: steps, rows (of the arrays), ask=1 (wait for a line on standard input before each step and before Close),
kill=1 (die of SIGKILL in place of Close), config=FILE (settings from an XML file), and every parameter of SST, for
example QueueLimit=1.

`relay` streams the steps of a dataset of one rank, with the options ask and those of SST.

`read` reads all steps with the reader of ADIOS2 and prints how many, their bytes and the seconds from the first step to
the end of the stream. Options: ready=1 (print a line when the stream is open).
"""
import json
import os
import random
import signal
import sys
import time
import zlib

import numpy as np
import adios2.bindings as bindings

IO_NAME = "TAU trace data"
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float32", "float64", "complex64", "complex128"]
SYNC, DEFERRED = bindings.Mode.Sync, bindings.Mode.Deferred


class Writer:
    def __init__(self, path, truth, params):
        config = params.pop("config", "")
        self.adios = bindings.ADIOS(config) if config else bindings.ADIOS()
        self.io = self.adios.DeclareIO(IO_NAME)
        if not config:
            self.io.SetEngine("SST")
            self.io.SetParameters({"RendezvousReaderCount": "1", "DataTransport": "WAN", **params})
        self.truth, self.vars, self.keep = open(truth, "w", encoding="utf-8"), {}, []
        self.blocks, self.attrs, self.onetime = [], [], "UseOneTimeAttributes" in params
        self.engine = self.io.Open(path, bindings.Mode.Write)

    def line(self, entry):
        self.truth.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self.truth.flush()

    def attr(self, name, value):
        self.io.DefineAttribute(name, value, "", "/")
        values = [value] if isinstance(value, str) else [str(x) for x in np.atleast_1d(np.array(value))]
        self.attrs.append([name, values])

    def put(self, name, data, shape, start, count):
        if name not in self.vars:
            self.vars[name] = self.io.DefineVariable(name, data, shape, start, count, False)
        elif count:
            if shape:
                self.vars[name].SetShape(shape)
            self.vars[name].SetSelection((start, count))
        self.keep.append(data)
        self.engine.Put(self.vars[name], data, DEFERRED if count else SYNC)
        self.blocks.append([name, str(data.dtype), count, zlib.crc32(data)])

    def scalar(self, name, value, dtype="int32"):
        self.put(name, np.array([value], dtype), [], [], [])

    def array(self, name, data):
        self.put(name, data, list(data.shape), [0] * data.ndim, list(data.shape))

    def local(self, name, data):
        self.put(name, data, [], [], list(data.shape))

    def end_step(self, number):
        self.line({"step": number, "blocks": self.blocks, "attributes": self.attrs})
        self.blocks, self.attrs = [], []
        self.engine.EndStep()
        self.keep.clear()


def rows(step, count, columns):
    """Numbers that differ in each step and row, and are quick to make."""
    first = np.uint64(step * 1000003 + columns)
    return (np.arange(count * columns, dtype=np.uint64) * np.uint64(2654435761) + first).reshape(count, columns)


def tau(w, i, count):
    """What TAU's trace plugin writes; attributes appear late, arrays without rows not at all."""
    counts = (count, 0 if i % 5 == 2 else count // 7, 0 if i < 3 else count // 11)
    if i == 0:
        w.attr("program_name 0", "/usr/bin/program")
        for k, name in enumerate(["ENTRY", "EXIT", "SEND", "RECV"]):
            w.attr(f"event_type {k}", name)
    for k in range(3) if i % 4 == 0 else ():
        w.attr(f"timer {3 * (i // 4) + k}", f"void f{i}::g{k}() [{{/src/größe.c}} {{{i},{k}}}]")
    if i in (1, 7):
        w.attr(f"MetaData:0:0:key {i}", "x" * 3000)
    for name, value in (("program_count", 1), ("comm_rank_count", 1), ("thread_count", 2), ("event_type_count", 4),
                        ("timer_count", 3 * (i // 4) + 3), ("counter_count", 2)):
        w.scalar(name, value)
    for name, value in zip(("timer_event_count", "counter_event_count", "comm_count"), counts):
        w.scalar(name, value, "uint64")
    for name, n, columns in zip(("event_timestamps", "counter_values", "comm_timestamps"), counts, (6, 6, 8)):
        if n:
            w.array(name, rows(i, n, columns))


def types(w, i, count):
    """All types, several blocks, strings, attributes of all kinds."""
    rng = random.Random(i)
    for d in DTYPES:
        data = np.array([rng.randrange(100) for _ in range(24)]).astype(d)
        w.scalar(f"value/{d}", data[0], d)
        w.array(f"array/{d}", data.reshape(2, 3, 4))
        for n in (5, 1, 3 + i):
            w.local(f"local/{d}", data[:n].copy())
        if i == 0 and (w.onetime or not d.startswith("complex")):  # which SST does not send otherwise
            w.attr(f"single {d}", np.array(data[1]))
            w.attr(f"list {d}", data[:5])
    text = ["Grüße, 漢字", "x", ""][i % 3]
    if "text" not in w.vars:
        w.vars["text"] = w.io.DefineVariable("text")
    w.engine.Put(w.vars["text"], text)
    w.blocks.append(["text", "string", [], zlib.crc32(text.encode())])
    w.attr(f"string {i}", text)
    if w.onetime:  # the same
        w.attr(f"strings {i}", ["one", "", "drei µ"])


def nothing(w, i, count):
    """Steps without arrays; some have nothing at all."""
    if i % 2:
        w.scalar("number", i)


def same(w, i, count):
    """The same array in each step, and nothing else: as much as goes through."""
    if not i:
        w.same = rows(0, count, 6)
        w.vars["event_timestamps"] = w.io.DefineVariable("event_timestamps", w.same, [count, 6], [0, 0], [count, 6], False)
    w.engine.Put(w.vars["event_timestamps"], w.same, DEFERRED)


SHAPES = {"same": same, "tau": tau, "types": types, "nothing": nothing}


def write(shape, path, truth, steps=5, rows=100, ask=0, kill=0, **params):
    w = Writer(path, truth, params)
    for i in range(int(steps)):
        if ask and not sys.stdin.readline():
            return
        w.engine.BeginStep()
        SHAPES[shape](w, i, int(rows))
        w.end_step(i)
        print("step", i, flush=True)
    if ask:
        sys.stdin.readline()
    if kill:
        os.kill(os.getpid(), signal.SIGKILL)
    w.engine.Close()
    w.line({"end": True})


def relay(source, path, ask=0, **params):
    w = Writer(path, os.devnull, params)
    io = w.adios.DeclareIO("source")
    dataset = io.Open(source, bindings.Mode.Read)
    known, number = set(), 0
    while dataset.BeginStep() == bindings.StepStatus.OK:
        if ask and not sys.stdin.readline():
            return
        w.engine.BeginStep()
        for name in sorted(io.AvailableAttributes().keys() - known):
            known.add(name)
            w.attr(name, io.InquireAttribute(name).DataString()[0])
        for name in io.AvailableVariables():
            var = io.InquireVariable(name)
            shape = list(var.Shape())
            data = np.empty(shape or [1], var.Type().removesuffix("_t"))
            if shape:
                var.SetSelection(([0] * len(shape), shape))
            dataset.Get(var, data, SYNC)
            w.put(name, data, shape, [0] * len(shape), shape)
        w.end_step(number)
        dataset.EndStep()
        print("step", number, flush=True)
        number += 1
    if ask:
        sys.stdin.readline()
    w.engine.Close()


def read(path, ready=0):
    adios = bindings.ADIOS()
    io = adios.DeclareIO(IO_NAME)
    io.SetEngine("SST")
    engine = io.Open(path, bindings.Mode.Read)
    if ready:
        print("open", flush=True)
    steps, size, start, arrays = 0, 0, None, {}
    while engine.BeginStep() == bindings.StepStatus.OK:
        start = start or time.perf_counter()
        for name in ("event_timestamps", "counter_values", "comm_timestamps"):
            var = io.InquireVariable(name)
            if var:
                shape = tuple(var.Shape())
                if name not in arrays or arrays[name].shape != shape:
                    arrays[name] = np.empty(shape, np.uint64)
                var.SetSelection(([0] * len(shape), list(shape)))
                engine.Get(var, arrays[name], DEFERRED)
                size += arrays[name].nbytes
        engine.EndStep()
        steps += 1
    print(steps, size, time.perf_counter() - (start or 0), flush=True)
    engine.Close()


if __name__ == "__main__":
    words = [a for a in sys.argv[1:] if "=" not in a]
    options = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
    {"write": write, "relay": relay, "read": read}[words[0]](*words[1:], **options)
