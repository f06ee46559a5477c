"""Prints the results of Holistic Trace Analysis for the traces of hta.jsonl: see README.md."""

import glob
import json
import math
import os
import re
import sys

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
from hta.trace_analysis import TraceAnalysis  # noqa: E402

RUNS = {
    "hta-nccl": "hta-nccl.json.gz",
    "hta-ns-resolution": "hta-ns-resolution.json.gz",
    "mi300-resnet": "mi300-resnet.json.gz",
    "resnet4-always": "always/*.json.gz",
    "transformer4-stalls": "stalls/*.json.gz",
    "transformer4-straggler": "straggler/*.json.gz",
}


def rank_of(path):
    match = re.search(r"rank(\d+)", path)
    return int(match.group(1)) if match else 0


for name, pattern in RUNS.items():
    files = {rank_of(f): os.path.abspath(f) for f in glob.glob(os.path.join(sys.argv[1], pattern))}
    run = TraceAnalysis(trace_files=files, trace_dir=sys.argv[1], include_last_profiler_step=True)
    overlaps = run.get_comm_comp_overlap(visualize=False).set_index("rank")["comp_comm_overlap_pctg"]
    for times in run.get_temporal_breakdown(visualize=False).to_dict("records"):
        rank = times["rank"]
        streams = {}
        idle, _ = run.get_idle_time_breakdown(ranks=[rank], visualize=False)
        for row in idle.to_dict("records"):
            column = ("host_wait", "kernel_wait", "other").index(row["idle_category"])
            streams.setdefault(str(row["stream"]), [0, 0, 0])[column] = row["idle_time"]
        result = {
            "file": name,
            "rank": int(rank),
            "kernels": int((run.t.get_trace(rank)["stream"] >= 0).sum()),
            "kernel_us": round(times["kernel_time(us)"], 3),
            "compute_us": round(times["compute_time(us)"], 3),
            "non_compute_us": round(times["non_compute_time(us)"], 3),
            "idle_us": round(times["idle_time(us)"], 3),
            "overlap_percent": None if math.isnan(overlaps[rank]) else overlaps[rank],
            "streams": dict(sorted(streams.items())),
        }
        print(json.dumps(result, separators=(",", ":"), default=float))
