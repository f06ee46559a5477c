"""Writes archives with launches of GPU kernels as programs record them, to subdirectories of DIR.

Needs the package otf2 of PyPI. Usage: python launches.py DIR"""

import os
import sys

import otf2
from otf2 import events

HOST, STREAM = otf2.LocationType.CPU_THREAD, otf2.LocationType.ACCELERATOR_STREAM


class Archive:
    """An archive of a process with two threads and two streams."""

    def __init__(self, trace):
        self.trace = trace
        d = self.definitions = trace.definitions
        node = d.system_tree_node("node17", class_name="node", parent=d.system_tree_node("machine"))
        group = d.location_group("process", system_tree_parent=node)
        self.main = d.location("main", type=HOST, group=group)
        self.second = d.location("second", type=HOST, group=group)
        context = d.location_group(
            "context", location_group_type=otf2.LocationGroupType.ACCELERATOR, system_tree_parent=node, creating_location_group=group
        )
        self.streams = [d.location(f"stream {i}", type=STREAM, group=context) for i in range(2)]
        self.regions = {}
        self.pending = []

    def call(self, location, start, end, name, attributes=None, leaving=None, role=otf2.RegionRole.FUNCTION, inside=()):
        """Adds a call with events after its entry."""
        if name not in self.regions:
            self.regions[name] = self.definitions.region(name, region_role=role)
        region = self.regions[name]
        self.pending.append((location, start, events.Enter(start, region, attributes=attributes)))
        self.pending.extend((location, start, event) for event in inside)
        self.pending.append((location, end, events.Leave(end, region, attributes=leaving)))

    def close(self):
        """Writes the events in order of time."""
        for location, _, event in sorted(self.pending, key=lambda p: p[1]):
            self.trace.event_writer_from_location(location).write(event)


def callsites(a):
    """Returns the function that adds Score-P's parameter."""
    parameter = a.definitions.parameter("callsite id", parameter_type=otf2.ParameterType.UINT64)
    return lambda time, path: [events.ParameterUnsignedInt(time, parameter, path)]


def hip(a):
    """Score-P's HIP adapter: launches have only their call path. "both" runs in two streams, and two threads launch "shared"."""
    site = callsites(a)
    for thread, start, path in [
        (a.main, 100, 7), (a.main, 120, 7), (a.main, 140, 8), (a.main, 160, 7), (a.main, 180, 9), (a.main, 200, 9),
        (a.second, 110, 10), (a.main, 220, 11), (a.second, 230, 11),
    ]:
        a.call(thread, start, start + 10, "hipLaunchKernel", inside=site(start, path))
    for stream, start, name, path in [
        (0, 150, "first", 7), (0, 200, "first", 7), (0, 250, "first", 7), (1, 160, "other", 8),
        (1, 300, "both", 9), (0, 310, "both", 9), (1, 200, "of second", 10), (0, 350, "shared", 11), (0, 370, "shared", 11),
    ]:
        a.call(a.streams[stream], start, start + 20, name, inside=site(start, path))


def cuda(a):
    """Score-P's CUDA adapter: launches have their call path and, except the first, their stream; copies name it at their end."""
    site = callsites(a)
    ref = a.definitions.attribute("CUDA_STREAM_REF", "Referenced CUDA stream", otf2.Type.LOCATION)
    extra = [
        a.definitions.attribute(str(kind), "of another type", kind)
        for kind in (otf2.Type.UINT8, otf2.Type.INT16, otf2.Type.FLOAT, otf2.Type.DOUBLE, otf2.Type.STRING)
    ]
    values = dict(zip(extra, [200, -300, 1.5, 2.5, "text"]))
    for start, path, stream in [(100, 7, None), (120, 9, 1), (140, 9, 0), (160, 7, 0), (180, 9, 0)]:
        attributes = {**values, ref: a.streams[stream]} if stream is not None else dict(values)
        a.call(a.main, start, start + 10, "cuLaunchKernel", attributes, inside=site(start, path))
    a.call(a.main, 200, 210, "cuMemcpyAsync", leaving={ref: a.streams[0]})
    for stream, start, name, path in [
        (0, 150, "first", 7), (0, 180, "both", 9), (0, 210, "first", 7), (1, 200, "both", 9), (0, 240, "both", 9)
    ]:
        a.call(a.streams[stream], start, start + 20, name, inside=site(start, path))


def references(a):
    """Score-P's CUDA adapter without call paths: launches have their stream, whose idle time is an artificial region."""
    ref = a.definitions.attribute("CUDA_STREAM_REF", "Referenced CUDA stream", otf2.Type.LOCATION)
    for start, stream in [(100, 1), (120, 0), (140, 0)]:
        a.call(a.main, start, start + 10, "cuLaunchKernel", {ref: a.streams[stream]})
    a.call(a.main, 160, 170, "cuStreamSynchronize", leaving={ref: a.streams[0]})
    a.call(a.streams[0], 101, 150, "COMPUTE IDLE", role=otf2.RegionRole.ARTIFICIAL)
    for stream, start, name in [(0, 150, "first"), (0, 180, "second"), (1, 200, "third")]:
        a.call(a.streams[stream], start, start + 20, name)


def apex(a):
    """APEX: every entry has its task, and that of a kernel the task of the launch."""
    task = a.definitions.attribute("GUID", "Globally unique identifier", otf2.Type.UINT64)
    parent = a.definitions.attribute("Parent GUID", "Globally unique identifier of the parent task", otf2.Type.UINT64)
    a.call(a.main, 90, 400, "solve", {task: 500}, {task: 500})
    for start, number in [(100, 501), (120, 502), (140, 503)]:
        a.call(a.main, start, start + 10, "cudaLaunchKernel", {task: number, parent: 500}, {task: number, parent: 500})
    for stream, start, number, by in [(0, 150, 601, 502), (0, 180, 602, 503), (1, 200, 603, 501)]:
        attributes = {task: number, parent: by}
        a.call(a.streams[stream], start, start + 20, f"GPU: [CUDA] kernel {number}", attributes, attributes)


def tau(a):
    """TAU: a metric in launches and kernels."""
    metric = a.definitions.metric("Correlation ID", unit="", value_type=otf2.Type.UINT64)
    for start, number in [(100, 31), (120, 32)]:
        a.call(a.main, start, start + 10, "cudaLaunchKernel", inside=[events.Metric(start, metric, [number])])
    for stream, start, number in [(1, 150, 32), (0, 160, 31)]:
        a.call(a.streams[stream], start, start + 20, "kernel", inside=[events.Metric(start, metric, [number])])


for write in (hip, cuda, references, apex, tau):
    with otf2.writer.open(os.path.join(sys.argv[1], write.__name__), timer_resolution=1_000_000_000) as trace:
        archive = Archive(trace)
        write(archive)
        archive.close()
