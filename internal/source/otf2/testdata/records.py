"""Writes the archive "records", which has every event that the reference library can write.

Needs the package otf2 of PyPI. Usage: python records.py DIR"""

import inspect
import sys

import otf2
from otf2 import events


def value(name, kind, known):
    """Returns a value of a field of an event."""
    if kind.endswith("Ref"):
        return known[kind[:-3]]
    if kind == "TimeStamp":
        return known["time"] + 5
    if kind.startswith("ctypes.c_int"):
        return -3
    if kind.startswith("ctypes"):
        return {"sender": 0, "receiver": 0, "remote": 0, "root": 0}.get(name, 300 + len(name))
    if kind == "array":
        return [known["String"]] if name == "programArguments" else None
    enum = getattr(otf2, kind)
    return getattr(enum, "NONE", None) or enum(1)


def main(directory):
    with otf2.writer.open(directory, timer_resolution=1_000_000_000) as trace:
        d = trace.definitions
        root = d.system_tree_node("machine")
        node = d.system_tree_node("node17", class_name="node", parent=root)
        group = d.location_group("process", system_tree_parent=node)
        location = d.location("main", group=group)
        members = d.group(group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=otf2.Paradigm.MPI, members=[location])
        world = d.group(group_type=otf2.GroupType.COMM_GROUP, paradigm=otf2.Paradigm.MPI, members=[location])
        comm = d.comm("world", group=world)
        region = d.region("work", source_file="work.c", begin_line_number=7, end_line_number=9, paradigm=otf2.Paradigm.USER)
        paradigm = d.io_paradigm(identification="POSIX", name="POSIX I/O", io_paradigm_class=otf2.IoParadigmClass.SERIAL,
                                 io_paradigm_flags=otf2.IoParadigmFlag.OS)
        file = d.io_regular_file("data.txt", scope=node)
        known = {
            "Region": region,
            "Comm": comm,
            "Group": world,
            "String": "text",
            "RmaWin": d.rma_win("window", comm=comm),
            "CallingContext": d.calling_context(region=region, parent=None),
            "InterruptGenerator": d.interrupt_generator("timer", period=100),
            "IoParadigm": paradigm,
            "IoFile": file,
            "IoHandle": d.io_handle("handle", file=file, io_paradigm=paradigm, comm=comm),
        }
        metrics = [
            d.metric(name, unit="things", value_type=kind)
            for name, kind in [("int64", otf2.Type.INT64), ("uint64", otf2.Type.UINT64), ("double", otf2.Type.DOUBLE)]
        ]
        parameters = {
            "ParameterString": d.parameter("text", parameter_type=otf2.ParameterType.STRING),
            "ParameterInt": d.parameter("int", parameter_type=otf2.ParameterType.INT64),
            "ParameterUnsignedInt": d.parameter("uint", parameter_type=otf2.ParameterType.UINT64),
        }
        writer = trace.event_writer_from_location(location)
        time = 1000
        for name, event in sorted(inspect.getmembers(events, inspect.isclass)):
            if name.startswith("_") or not hasattr(event, "_fields"):
                continue
            time += 10
            known["time"] = time
            known["Parameter"] = parameters.get(name)
            if name == "Metric":
                for metric, v in zip(metrics, [-5, 2**63, 2.75]):
                    writer.write(event(time, metric, [v]))
                continue
            fields = [value(f, kind, known) for f, kind, _ in event._fields if f not in ("time", "attributes")]
            writer.write(event(time, *fields))
            writer.write(events.Enter(time + 8, region))  # so that a record of wrong length shows
            writer.write(events.Leave(time + 9, region))


main(sys.argv[1])
