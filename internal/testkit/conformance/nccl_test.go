package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// collectiveCall is the function of the scenario hidden-wait that waits for all ranks.
const collectiveCall = "average_gradients"

// gradientBytes is the size of its data.
const gradientBytes = 1 << 20

// TestCollectivesAgree writes only the collective calls of a program, as logs of NCCL Inspector, with times and without:
// their order and durations, the last rank to arrive, and the rank that is found to be slow are those of the program.
func TestCollectivesAgree(t *testing.T) {
	tracetest.SkipShort(t, "it analyzes many traces")
	tau := filepath.Join(t.TempDir(), "TAU")
	command(t, "simulate", "--scenario", "hidden-wait", "--duration", "5s", "--out", tau)
	p := read(t, tau, nil)
	want := p.calls(collectiveCall)
	found := findings(t, tau)
	if len(found) == 0 || found[0].Kind != "slow-peer" {
		t.Fatalf("findings are %+v", found)
	}
	for _, timed := range []bool{false, true} {
		t.Run(fmt.Sprint("with times: ", timed), func(t *testing.T) {
			dir, run := t.TempDir(), filepath.Join(t.TempDir(), "run")
			writeInspector(t, dir, p, timed)
			got := read(t, dir, nil)
			if fmt.Sprint(got.hosts) != fmt.Sprint(p.hosts) {
				t.Errorf("hosts are %v, want %v", got.hosts, p.hosts)
			}
			calls := got.calls("ncclKernel_AllReduce")
			for _, rank := range p.ranks() {
				if len(calls[rank]) != len(want[rank]) {
					t.Fatalf("rank %d has %d operations, want %d", rank, len(calls[rank]), len(want[rank]))
				}
				for i, w := range want[rank] {
					g := calls[rank][i]
					if g.end-g.start != w.end-w.start || timed && g.start != w.start {
						t.Fatalf("rank %d: operation %d is %+v, want %+v", rank, i, g, w)
					}
				}
			}
			command(t, "analyze", dir, "--out", run)
			compareCollectives(t, run, want, timed)
			if same := findingsOf(t, run); len(same) == 0 || same[0].Kind != found[0].Kind || !slices.Equal(same[0].Ranks, found[0].Ranks) ||
				!slices.Equal(same[0].Hosts, found[0].Hosts) || math.Abs(same[0].From-found[0].From) > 0.5 {
				t.Errorf("findings are %+v, want the rank, host and time of %+v", same, found[0])
			}
		})
	}
}

// calls returns the calls of each rank whose names begin with a text, in order.
func (p *program) calls(name string) map[trace.Rank][]call {
	all := make(map[trace.Rank][]call)
	for _, rank := range p.ranks() {
		p.eachCall(rank, func(_ int, c call) {
			if strings.HasPrefix(c.name, name) {
				all[rank] = append(all[rank], c)
			}
		})
		slices.SortFunc(all[rank], func(a, b call) int { return cmp.Compare(a.start, b.start) })
	}
	return all
}

// compareCollectives compares a run with what its calls say. Without times the rank with the shortest call is last.
func compareCollectives(t *testing.T, run string, calls map[trace.Rank][]call, timed bool) {
	t.Helper()
	var got api.Collectives
	if err := json.Unmarshal([]byte(command(t, "breakdown", run, "--collectives", "--format", "json")), &got); err != nil || len(got.Rows) != 1 {
		t.Fatalf("%+v: %v", got, err)
	}
	ahead := make(map[int64]int64) // clocks in nanoseconds
	for _, c := range got.Clocks {
		if ahead[c.Rank] = int64(c.Offset * 1e3); math.Abs(c.Offset) > 20 {
			t.Errorf("the clock of rank %d is %g us ahead", c.Rank, c.Offset)
		}
	}
	latency, skew, n, lasts := 0.0, 0.0, len(calls[0]), make(map[int64]int64)
	for i := range n {
		shortest, first, last, late := int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64), trace.Rank(0)
		for rank := range trace.Rank(len(calls)) {
			c := calls[rank][i]
			shortest = min(shortest, c.end-c.start)
			at := c.start - c.end
			if timed {
				at = c.start - ahead[int64(rank)]
			}
			if first = min(first, at); at > last {
				last, late = at, rank
			}
		}
		latency, skew = latency+float64(shortest)/1e3, skew+float64(last-first)/1e3
		lasts[int64(late)]++
	}
	row := &got.Rows[0]
	if row.Operation != "AllReduce" || row.Bytes != gradientBytes || row.Size != int64(len(calls)) || row.Seen != row.Size || row.Calls != int64(n) {
		t.Errorf("the operation is %+v", row)
	}
	latency, skew = latency/float64(n), skew/float64(n)
	bandwidth := 2 * float64(row.Size-1) / float64(row.Size) * gradientBytes / (latency / 1e6)
	if !near(row.MeanLatency, latency) || !near(*row.MeanSkew, skew) || !near(row.Bandwidth, bandwidth) {
		t.Errorf("latency %g, skew %g, bandwidth %g, want %g, %g and %g", row.MeanLatency, *row.MeanSkew, row.Bandwidth, latency, skew, bandwidth)
	}
	for _, last := range row.Last {
		if lasts[last.Rank] != last.Calls {
			t.Errorf("rank %d was last %d times, want %d", last.Rank, last.Calls, lasts[last.Rank])
		}
	}
	if len(row.Last) != len(lasts) || got.More > 0 {
		t.Errorf("%d ranks were last, want %d", len(row.Last), len(lasts))
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6*math.Abs(b) }

// writeInspector writes the log of each rank. Operations are written every half millisecond.
func writeInspector(t *testing.T, dir string, p *program, timed bool) {
	t.Helper()
	for rank, calls := range p.calls(collectiveCall) {
		var text strings.Builder
		for i, c := range calls {
			start, end := c.start/1000, c.end/1000 // microseconds
			fmt.Fprintf(&text, `{"header":{"id":"0x5eed","rank":%d,"n_ranks":%d,"nnodes":2},`+
				`"metadata":{"dump_timestamp_us":%d,"hostname":%q,"pid":%d},`+
				`"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":%d,"coll_exec_time_us":%d}`,
				rank, len(p.hosts), end-end%500+500, p.hosts[rank], 100+rank, i, gradientBytes, end-start)
			if timed {
				fmt.Fprintf(&text, `,"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[`+
					`{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d}]}`, start-30, start-20, start, end)
			}
			text.WriteString("}\n")
		}
		path := filepath.Join(dir, fmt.Sprintf("%s-pid%d.log", p.hosts[rank], 100+rank))
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
