package catalog

import (
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

// breakdownTables returns the rows of a breakdown, which replace all such rows of the run.
func breakdownTables(run provdb.RunID, b *provenance.Breakdown) []Table {
	return []Table{gpuTimeTable(run, b.Times), collectiveTable(run, b.Collectives), clockTable(run, b.Clocks)}
}

func gpuTimeTable(run provdb.RunID, all []provenance.GPUTime) Table {
	return Table{
		Name: "gpu_times", Len: len(all),
		Columns: []string{
			"run", "pid", "rid", "step", "start_us", "total_us", "compute_us", "communication_us", "memory_us", "exposed_communication_us",
			"exposed_memory_us", "overlap_us", "idle_us", "host_wait_us", "kernel_wait_us", "other_wait_us", "streams",
		},
		Row: func(i int) []any {
			t := &all[i]
			return []any{
				int32(run), int32(t.PID), int32(t.RID), valueOf(t.Step), int64(t.Start), int64(t.Total), int64(t.Compute),
				int64(t.Communication), int64(t.Memory), int64(t.ExposedCommunication), int64(t.ExposedMemory), int64(t.Overlap), int64(t.Idle),
				int64(t.HostWait), int64(t.KernelWait), int64(t.OtherWait), list(t.Streams),
			}
		},
	}
}

func collectiveTable(run provdb.RunID, all []provenance.CollectiveStats) Table {
	return Table{
		Name: "collectives", Len: len(all),
		Columns: []string{
			"run", "collective", "pid", "operation", "process_group", "group_size", "ranks_seen", "bytes", "dtype", "calls", "latency_sum_us",
			"latency_max_us", "skews", "skew_sum_us", "skew_max_us", "last_ranks", "bus_bandwidth",
		},
		Row: func(i int) []any {
			c := &all[i]
			return []any{
				int32(run), int32(i + 1), int32(c.PID), c.Operation, c.Group, int32(c.Size), int32(c.Seen), c.Bytes, c.DType, c.Calls,
				int64(c.LatencySum), int64(c.LatencyMax), c.Skews, int64(c.SkewSum), int64(c.SkewMax), list(c.Last), c.Bandwidth,
			}
		},
	}
}

func clockTable(run provdb.RunID, all []provenance.RankClock) Table {
	return Table{
		Name: "clocks", Len: len(all),
		Columns: []string{"run", "pid", "rid", "offset_us", "matched"},
		Row: func(i int) []any {
			c := &all[i]
			return []any{int32(run), int32(c.PID), int32(c.RID), int64(c.Offset), c.Matched}
		},
	}
}
