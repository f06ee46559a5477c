#!/usr/bin/env python3
"""Write one dataset with ADIOS2 itself, and a record of what was written.

    write.py SCENARIO ENGINE OUT_PATH TRUTH.jsonl
    write.py list

SCENARIO is a key of SCENARIOS near the end of this file, ENGINE is BP3, BP4 or BP5; `list` prints each scenario with
its engines. The truth file gets one JSON line per step, right after EndStep returned, and a last line after Close;
README.md describes it. Tests of the Go reader compare every value with it.

Exit status: 0 written, 2 wrong usage, 3 this combination cannot be written here (the reason is printed after
"SKIP"). Scenarios `grow` and `killed` read the environment: STEPS (default 40) and PAUSE_MS (default 20).

Needs the Python packages adios2 (2.10 or later) and numpy. All data is seeded: two runs write the same values.
"""
import ctypes
import json
import os
import random
import signal
import sys
import time

import numpy as np
import adios2
import adios2.bindings as bindings

IO_NAME = "TAU trace data"
SYNC, DEFERRED = bindings.Mode.Sync, bindings.Mode.Deferred
JOINED_DIM = 2**64 - 2
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float32", "float64", "complex64", "complex128"]
# ADIOS2's type names that differ from those of the truth file.
TYPE_NAMES = {f"{u}int{n}_t": f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
TYPE_NAMES.update({"float complex": "complex float", "double complex": "complex double"})


class Skip(Exception):
    """The scenario cannot be written with this engine or this build of ADIOS2."""


def fnv1a64(data):
    """FNV-1a, 64 bits, as 16 hexadecimal digits."""
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def number_text(x):
    """Text of one number: integers in decimal, floats as repr of the double, complex as (re+imi)."""
    if np.iscomplexobj(x):
        re, im = repr(float(x.real)), repr(float(x.imag))
        return f"({re}{'' if im[0] == '-' else '+'}{im}i)"
    return repr(float(x)) if isinstance(x, np.floating) else str(int(x))


class Truth:
    """The truth file: collects one step and writes it as one line."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")
        self.step, self.vars, self.attrs = 0, {}, []

    def block(self, name, type_name, kind, shape, start, count, raw, value=None, total=None, **extra):
        """Note one block of a variable; extra goes to the variable."""
        var = self.vars.setdefault(name, {"name": name, "type": type_name, "kind": kind, **extra, "blocks": []})
        block = {"shape": list(shape), "start": list(start), "count": list(count), "fnv1a64": fnv1a64(raw)}
        if total is not None:
            block["sum"] = str(total)
        if value is not None:
            block["value"] = value
        var["blocks"].append(block)

    def line(self, entry):
        self.file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self.file.flush()

    def end_step(self, **extra):
        self.line({"step": self.step, **extra, "vars": list(self.vars.values()), "attrs": self.attrs})
        self.step, self.vars, self.attrs = self.step + 1, {}, []

    def end(self):
        self.line({"end": True, "steps": self.step})


class Writer:
    """One dataset: passes everything to ADIOS2 and notes it in the truth file."""

    def __init__(self, engine, path, truth_path, params):
        self.adios = bindings.ADIOS()
        self.io = self.adios.DeclareIO(IO_NAME)
        self.io.SetEngine(engine)
        self.io.SetParameters(params)
        self.engine_name, self.vars, self.keep, self.rank = engine, {}, [], Rank()
        self.truth = Truth(truth_path)
        self.engine = self.io.Open(path, bindings.Mode.Write)

    def attr(self, name, value, variable=""):
        """Define an attribute: a str, a list of str, or a numpy array (0-dimensional = a single value)."""
        attribute = self.io.DefineAttribute(name, value, variable, "/")
        if isinstance(value, np.ndarray):
            is_array, values = value.ndim > 0, [number_text(x) for x in value.reshape(-1)]
        else:
            is_array, values = not isinstance(value, str), [value] if isinstance(value, str) else value
        self.truth.attrs.append({"name": f"{variable}/{name}" if variable else name, "array": is_array,
                                 "type": TYPE_NAMES.get(attribute.Type(), attribute.Type()), "values": values})

    def put(self, kind, name, data, shape, start, count, mode=SYNC, operator=None):
        """Put one block; the variable is defined at its first use."""
        var = self.vars.get(name)
        if var is None:
            var = self.vars[name] = self.io.DefineVariable(name, data, shape, start, count, False)
            if operator:
                var.AddOperation(self.adios.DefineOperator("op " + name, operator, {}), {})
        elif count:
            if kind == "global array":
                var.SetShape(shape)
            var.SetSelection((start, count))
        self.keep.append(data)  # the array of a deferred Put must live until EndStep
        self.engine.Put(var, data, mode)
        value = None if count else number_text(data[0])
        total = np.add.reduce(data, axis=None, dtype=np.uint64) if count and data.dtype == np.uint64 else None
        raw = data.astype(data.dtype.newbyteorder("<")).tobytes()
        self.truth.block(name, TYPE_NAMES.get(var.Type(), var.Type()), kind, shape if count else [], start, count, raw,
                         value, total, **({"operator": operator} if operator else {}))

    def scalar(self, name, value, dtype="int32"):
        self.put("global value", name, np.array([value], dtype), [], [], [])

    def local_value(self, name, value, dtype):
        self.put("local value", name, np.array([value], dtype), [bindings.LocalValueDim], [], [])

    def array(self, name, data, shape=None, start=None, **more):
        """One block of a global array; by default the block is the whole array."""
        shape, start = list(shape or data.shape), start or [0] * data.ndim
        self.put("global array", name, data, shape, start, list(data.shape), **more)

    def local(self, name, data):
        self.put("local array", name, data, [], [], list(data.shape))

    def text(self, name, value):
        if name not in self.vars:
            self.vars[name] = self.io.DefineVariable(name)
        self.engine.Put(self.vars[name], value)
        self.truth.block(name, "string", "global value", [], [], [], value.encode(), value)


def sample(rng, dtype, count):
    """count values of a type: its extremes first, then random ones."""
    kind = np.dtype(dtype).kind
    if kind in "iu":
        info = np.iinfo(dtype)
        values = [info.min, info.max, 0, 1] + [rng.randint(info.min, info.max) for _ in range(count)]
    else:
        info = np.finfo(dtype)
        values = [float(info.min), float(info.tiny), -0.0, float("inf"), float("nan")]
        values += [rng.uniform(-1e6, 1e6) for _ in range(count)]
        if kind == "c":
            values = [complex(v, w) for v, w in zip(values, reversed(values))]
    return np.array(values[:count], dtype)


def words(rng, *shape):
    """An array of random uint64 values."""
    return np.array([rng.getrandbits(64) for _ in range(int(np.prod(shape)))], np.uint64).reshape(shape)


# ---- TAU's schema -------------------------------------------------------------------------------------------------

EVENT_TYPES = ["ENTRY", "EXIT", "SEND", "RECV"]
ENTRY, EXIT, SEND, RECV = range(4)
TIMERS = (["int main(int, char **) C", "void solve() C++", "MPI_Send()", "MPI_Recv()",
           "addr=<0x4005d0> [{/src/a b.c} {12,0}]", "std::vector<double>::push_back(double const&)", "größe λ"]
          + [f"kernel_{i} [THROTTLED] : loop {i}" for i in range(40)])
COUNTERS = ["TIME", "Heap Memory Used (KB)", "MPI-IO: bytes", "counter of timers", "Memory Footprint (VmRSS) (KB)"]
# Step, key and value of metadata, which becomes known late; some keys look like other attributes.
METADATA = [
    (0, "0:0:Hostname", "node0"), (0, "0:0:Executable", "/usr/bin/prog"), (0, "0:0:Command Line", ""),
    (0, "0:0:Starting Timestamp", "1700000000000000"), (0, "0:0:CPU MHz", "2400.000"), (1, "0:1:tid", "4711"),
    (1, "0:0:timer 1", "not a timer"), (1, "0:0:counter 0", "not a counter"), (1, "0:0:event_type 3", "no type"),
    (2, "0:0:TAU timer resolution (counter)", "1 µs"), (2, "0:0:GPU[0] Bus: 00:1f.2: name", "a:b:c"),
    (3, "0:0: leading space", " spaces kept "), (3, "0:0:UTF-8 Schlüssel", "Grüße, λ, 漢字, 🚀"),
    (4, "0:1:empty", ""), (4, "0:0:line", "one\ntwo\ttab \"quoted\" \\"), (5, "0:0:long", "x" * 3000)]


class Rank:
    """A plausible TAU process with two threads: call stacks, counters and messages that go on from step to step."""

    def __init__(self):
        self.rng = random.Random(7)
        self.clock = [1700000000000000, 1700000000000500]
        self.stacks, self.timers, self.counters = [[], []], {}, {}

    def now(self, tid):
        self.clock[tid] += max(0, self.rng.randrange(-20, 40))  # every third event at the time of the one before
        return self.clock[tid]

    def enter(self, rows, tid, name, attrs):
        if name not in self.timers:
            self.timers[name] = len(self.timers)
            attrs.append((f"timer {self.timers[name]}", name))
        self.stacks[tid].append(self.timers[name])
        rows.append([0, 0, tid, ENTRY, self.timers[name], self.now(tid)])

    def leave(self, rows, tid):
        rows.append([0, 0, tid, EXIT, self.stacks[tid].pop(), self.now(tid)])

    def step(self, number):
        """The rows of event_timestamps, counter_values and comm_timestamps, and the new attributes."""
        events, counters, messages, attrs, rng = [], [], [], [], self.rng
        if number == 0:
            attrs += [("program_name 0", "/usr/bin/prog"), ("counter 0", "TIME")]
            attrs += [(f"event_type {i}", name) for i, name in enumerate(EVENT_TYPES)]
            self.counters["TIME"] = 0  # registered, never used, as TAU does
        attrs += [("MetaData:" + key, value) for when, key, value in METADATA if when == number]
        for tid in (0, 1) if number != 2 else ():  # step 2 has no arrays
            for _ in range(20 + rng.randrange(20)):
                depth = len(self.stacks[tid])
                if depth == 0 or (depth < 6 and rng.random() < 0.55):
                    choice = rng.randrange(min(len(TIMERS) - 2, 2 + number))
                    self.enter(events, tid, TIMERS[choice if choice < 2 else choice + 2], attrs)
                else:
                    self.leave(events, tid)
                if rng.random() < 0.3:
                    name = rng.choice(COUNTERS[1:2 + min(number, 3)])
                    if name not in self.counters:
                        self.counters[name] = len(self.counters)
                        attrs.append((f"counter {self.counters[name]}", name))
                    value = rng.choice([0, 2**64 - 1, rng.getrandbits(20)])
                    counters.append([0, 0, tid, self.counters[name], value, self.now(tid)])
                if number >= 3 and tid == 0 and rng.random() < 0.2:
                    kind = rng.choice([SEND, RECV])
                    self.enter(events, tid, TIMERS[kind], attrs)  # MPI_Send() or MPI_Recv()
                    messages.append([0, 0, 0, kind, rng.randrange(100), 1, rng.randrange(1 << 16), self.now(0)])
                    self.leave(events, tid)
        for rows in (counters, messages):
            rows.sort(key=lambda row: (row[-1], row[:-1]))
        return events, counters, messages, attrs


def tau(w, i):
    """One step as TAU's trace plugin writes it."""
    events, counters, messages, attrs = w.rank.step(i)
    for name, value in attrs:
        w.attr(name, value)
    for name, value in (("program_count", 1), ("comm_rank_count", 2), ("thread_count", 2),
                        ("event_type_count", len(EVENT_TYPES)), ("timer_count", len(w.rank.timers)),
                        ("timer_event_count", len(events)), ("counter_count", len(w.rank.counters)),
                        ("counter_event_count", len(counters)), ("comm_count", len(messages))):
        w.scalar(name, value, "uint64" if name.endswith("event_count") or name == "comm_count" else "int32")
    for name, rows in (("event_timestamps", events), ("counter_values", counters), ("comm_timestamps", messages)):
        if rows:
            w.array(name, np.array(rows, np.uint64))


# ---- other scenarios: each function puts step i -------------------------------------------------------------------

def types(w, i):
    """Every type that the Python bindings know, in every shape."""
    rng = random.Random(11 + i)
    for d in DTYPES:
        w.scalar(f"value/{d}", sample(rng, d, 2)[i], d)
        w.local_value(f"local value/{d}", sample(rng, d, 2)[1 - i], d)
        w.array(f"array1/{d}", sample(rng, d, 7 + i))
        w.array(f"array2/{d}", sample(rng, d, 12).reshape(3, 4))
        w.array(f"array3/{d}", sample(rng, d, 12).reshape(2, 3, 2))
        w.array(f"one/{d}", sample(rng, d, 1 + i)[i:])
        w.local(f"local/{d}", sample(rng, d, 5 - i))
        w.local(f"local2/{d}", sample(rng, d, 6).reshape(2 + i, 3 - i))
    w.text("text", ["Grüße, λ, 漢字, 🚀", "x"][i])
    w.text("empty text", ["", "not empty"][i])
    if i == 0:
        number_attributes(w, DTYPES)
        w.attr("string", "single")
        w.attr("strings", ["one", "", "drei µ"])
        w.attr("strings1", ["alone"])
        w.attr("of a variable", "unit: s", "array1/float64")


def number_attributes(w, dtypes):
    """Attributes of each type: a single value, an array, an array of one element."""
    rng = random.Random(17)
    for d in dtypes:
        w.attr(f"single {d}", np.array(sample(rng, d, 1)[0]))
        w.attr(f"array {d}", sample(rng, d, 6))
        w.attr(f"array1 {d}", sample(rng, d, 1))


def blocks(w, i):
    """Several blocks per variable in one step."""
    rng = random.Random(100 + i)
    whole = words(rng, 6 + i, 6)
    for first, end in ((4, 6 + i), (0, 1), (1, 4)):  # not in order
        w.array("rows", whole[first:end].copy(), whole.shape, [first, 0])
    w.array("rows", whole[:2, :3].copy(), whole.shape, [0, 0])  # overlaps
    grid = np.array([rng.uniform(-1, 1) for _ in range(24)]).reshape(2, 3, 4)
    for y in range(3):
        w.array("grid", grid[:, y:y + 1, 1:3].copy(), grid.shape, [0, y, 1])
    for n in (3, 1 + i, 0, 8):  # one of them empty
        w.local("pieces", np.array([rng.randint(-99, 99) for _ in range(n)], np.int32))
    for n in (1, 2 + i):
        w.local("tiles", words(rng, n, 2))
    w.array("empty", np.zeros((0, 6), np.uint64))


def tau_and_more(w, i):
    """A TAU trace with blocks and attributes of all types, for variants of the format by engine parameter."""
    tau(w, i)
    blocks(w, i)
    if i in (0, 3):
        number_attributes(w, DTYPES[i // 3::2])  # no string arrays: ADIOS2 crashes with UseOneTimeAttributes=off


def long(w, i):
    """Long strings, a large array, many attributes."""
    rng = random.Random(3)
    w.scalar("number", i)
    if i == 0:
        w.attr("attribute of 70000 bytes", "".join(rng.choices("abcdefghij", k=70000)))
        for name, value in (("before", "short"), ("empty", ""), ("zz after", "short")):
            w.attr(name, value)
        if w.engine_name == "BP5":
            w.text("text of 70000 bytes", "".join(rng.choices("0123456789", k=70000)))
        w.array("big", np.arange(655360, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    else:
        for k in range(3000):
            w.attr(f"timer {k}", f"function number {k}() [{{file.c}} {{{k},0}}]" * (1 + k % 3))
        w.text("text", "y" * 65535)


def flush(w, i):
    """Data leaves the buffer 1 + i times during the step; large deferred blocks come after later small ones."""
    rng = random.Random(5 + i)
    for part in range(1 + i):
        w.array("large", words(rng, 400, 6), [2000, 6], [400 * part, 0], mode=DEFERRED)
        w.local("small", words(rng, 3 + part, 2))
        w.array(f"other {part}", words(rng, 50))
        w.array(f"deferred {part}", words(rng, 600 + part), mode=DEFERRED)
        if part == 1:
            w.engine.PerformPuts()
            w.local("small", words(rng, 2, 2))
        w.engine.PerformDataWrite()
    w.array("large", words(rng, 400, 6), [2000, 6], [1600, 0], mode=DEFERRED)
    w.local("small", words(rng, 5, 2))
    w.scalar("number", i)


def changing(w, i):
    """Variables appear late, disappear and come back; shapes change; more than 64 variables; odd names."""
    rng = random.Random(9 + i)
    w.scalar("always", i)
    if i in (1, 2, 5):
        w.array("comes and goes", words(rng, 3 + i, 2))
        w.text("text that goes", f"step {i}")
    if i in (2, 3):
        for k in range(70):
            w.scalar(f"many {k}", 1000 * i + k, "int64")
    if i in (3, 4):
        odd = ["8_8_x", "BPG_8_8_x", "with space", "group/sub/x", "größe", "x_ElemCount", "_", "x:y:z"]
        for k, name in enumerate(odd):
            w.array(name, words(rng, k + 1))
            w.attr(f"{name} {i}", f"attribute of step {i}")
    if i == 5:
        w.scalar("many 65", -1, "int64")
        w.local("late local", words(rng, 2, 3))
        w.scalar("late double", 0.1, "float64")


def compressed(w, i):
    """An array that a reader without the operator has to refuse, and others that it need not."""
    for operator in ("bzip2", "blosc", "zfp", "null"):  # "null" only frames the data, but is marked like the others
        try:
            w.adios.DefineOperator(f"probe {operator} {i}", operator, {})
            break
        except ValueError:
            continue  # not in this build
    else:
        raise Skip("no operator in this wheel")
    w.scalar("plain", i)
    w.array("packed", np.arange(6000, dtype=np.float64).reshape(1000, 6), operator=operator)
    w.array("plain array", np.arange(10, dtype=np.uint64))


def statsblock(w, i):
    """Arrays that are larger than StatsBlockSize, and some that are not."""
    rng = random.Random(13 + i)
    w.scalar("number", i)
    w.array("one", words(rng, 1000))
    w.array("two", words(rng, 40 + i, 6))
    w.array("three", np.array([rng.uniform(-1, 1) for _ in range(210)]).reshape(5, 6, 7))
    w.array("bytes", sample(rng, "int8", 100))
    w.array("complex", sample(rng, "complex64", 120))
    w.array("below", words(rng, 6))
    w.local("local", sample(rng, "int32", 77))


def joined(w, i):
    """A joined array, which the Go reader may refuse."""
    for n in (2, 3 + i):
        w.put("joined array", "joined", words(random.Random(n), n, 3), [JOINED_DIM, 3], [], [n, 3])


def column_major(engine, path, truth_path):
    """A dataset as of a Fortran program: only the C library can declare one, so this goes through ctypes."""
    library = os.path.join(os.path.dirname(adios2.__file__), "libadios2_c.so")
    if not os.path.exists(library):
        raise Skip("no C library of ADIOS2 beside the Python package")
    lib, size, truth = ctypes.CDLL(library), ctypes.c_size_t, Truth(truth_path)
    column, int8, uint64, write, append_step, sync = 1, 5, 12, 1, 0, 5  # enumerations of the C API

    def call(name, *args, pointer=False):
        function = getattr(lib, "adios2_" + name)
        function.restype = ctypes.c_void_p if pointer else ctypes.c_int
        result = function(*args)
        if bool(result) != pointer:  # a null pointer or an error code
            raise RuntimeError(f"adios2_{name} failed")
        return ctypes.c_void_p(result)

    adios = call("init_serial", pointer=True)
    io = call("declare_io_order", adios, IO_NAME.encode(), column, pointer=True)
    call("set_engine", io, engine.encode())
    variables = []
    for name, dtype, code, dims in (("event_timestamps", "uint64", uint64, [6, 5]), ("int8", "int8", int8, [2, 3, 4])):
        shape_start_count = [(size * len(dims))(*x) for x in (dims, [0] * len(dims), dims)]
        handle = call("define_variable", io, name.encode(), code, size(len(dims)), *shape_start_count, 0, pointer=True)
        variables.append((name, dtype, dims, handle))
    stream = call("open", io, path.encode(), write, pointer=True)
    for i in range(2):
        call("begin_step", stream, append_step, ctypes.c_float(-1), ctypes.byref(ctypes.c_int()))
        for name, dtype, dims, handle in variables:
            data = (np.arange(np.prod(dims)) + i).astype(dtype)
            call("put", stream, handle, data.ctypes.data_as(ctypes.c_void_p), sync)
            total = data.sum() if dtype == "uint64" else None
            truth.block(name, dtype, "global array", dims, [0] * len(dims), dims, data.tobytes(), total=total)
        call("end_step", stream)
        truth.end_step(columnmajor=True)
    call("close", stream)
    truth.end()


ALL, NEW, GROWING = ("BP3", "BP4", "BP5"), ("BP4", "BP5"), ("grow", "killed")
# name: (function, number of steps, engines, engine parameters)
SCENARIOS = {
    "tau": (tau, 6, ALL, {}),
    "types": (types, 2, ALL, {}),
    "blocks": (blocks, 3, ALL, {}),
    "long": (long, 2, NEW, {}),
    "flush": (flush, 3, NEW, {"MinDeferredSize": "4096"}),
    "grow": (tau, None, ALL, {}),
    "killed": (tau, None, NEW, {}),
    "changing": (changing, 6, ALL, {}),
    "emptystep": (lambda w, i: i == 2 or w.scalar("number", i), 4, NEW, {}),
    "nosteps": (lambda w, i: w.attr("only", "attribute"), 0, ALL, {}),
    "compressed": (compressed, 2, ALL, {}),
    "columnmajor": (None, 2, ALL, {}),
    "joined": (joined, 2, NEW, {}),
    "attrs1": (tau_and_more, 6, ("BP5",), {"UseOneTimeAttributes": "off"}),
    "async": (tau_and_more, 6, ("BP5",), {"AsyncWrite": "on"}),
    "stats0": (tau_and_more, 6, NEW, {"StatsLevel": "0"}),
    "statsblock": (statsblock, 2, ("BP4",), {"StatsLevel": "1", "StatsBlockSize": "25"}),
}


def run(scenario, engine, path, truth_path):
    put_step, steps, engines, params = SCENARIOS[scenario]
    if engine not in engines:
        raise Skip(f"scenario {scenario} is not written with {engine}")
    if put_step is None:
        return column_major(engine, path, truth_path)
    w, growing, pause = Writer(engine, path, truth_path, params), scenario in GROWING, 0
    if growing:
        steps, pause = int(os.environ.get("STEPS", "40")), int(os.environ.get("PAUSE_MS", "20")) / 1000
    for i in range(steps):
        time.sleep(pause if i else 0)
        w.engine.BeginStep()
        put_step(w, i)
        w.engine.EndStep()
        w.keep.clear()
        w.truth.end_step()
        if growing:
            print("step", i, flush=True)
    if scenario == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if steps == 0:
        put_step(w, 0)  # outside of a step: ADIOS2 makes one at Close
    w.engine.Close()
    if steps == 0:
        w.truth.end_step()
    w.truth.end()


def main(args):
    if args == ["list"]:
        for name, (_, _, engines, _) in SCENARIOS.items():
            print(name, *engines)
        return 0
    if len(args) != 4 or args[0] not in SCENARIOS or args[1] not in ALL:
        print(f"usage: write.py {{{','.join(SCENARIOS)}}} {{{','.join(ALL)}}} OUT_PATH TRUTH.jsonl", file=sys.stderr)
        return 2
    try:
        run(*args)
    except Skip as why:
        print("SKIP", why)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
