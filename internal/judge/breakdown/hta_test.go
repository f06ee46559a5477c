package breakdown_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/breakdown"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// htaRow is a line of testdata/hta.jsonl.
type htaRow struct {
	File           string
	Rank           int
	Kernels        int64
	KernelTime     float64 `json:"kernel_us"`
	ComputeTime    float64 `json:"compute_us"`
	NonComputeTime float64 `json:"non_compute_us"`
	IdleTime       float64 `json:"idle_us"`
	Overlap        float64 `json:"overlap_percent"`
	Streams        map[trace.Thread][3]float64
}

// openKineto opens the trace of a rank, which is a file or in an archive with one for each rank.
func openKineto(t *testing.T, run string, rank int) io.Reader {
	archive, name := "", ""
	switch run {
	case "resnet4-always":
		archive, name = run+".tar", fmt.Sprintf("always/resnet_rank%d.pt.trace.json.gz", rank)
	case "transformer4-stalls", "transformer4-straggler":
		archive, name = run+".tar", fmt.Sprintf("%s/rank%d_trace.json.gz", strings.TrimPrefix(run, "transformer4-"), rank)
	default:
		archive = run + ".json.gz"
	}
	f, err := os.Open(tracetest.Shared(t, "traces", "kineto", archive))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	in := io.Reader(f)
	if name != "" {
		files := tar.NewReader(f)
		in = files
		for h, err := files.Next(); h == nil || path.Clean(h.Name) != name; h, err = files.Next() {
			if err != nil {
				t.Fatalf("%s in %s: %v", name, archive, err)
			}
		}
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

type kinetoEvent struct {
	Ph, Cat, Name string
	TS, Dur       json.Number
	Args          struct {
		Stream      json.Number
		Correlation json.Number
		Collective  string `json:"Collective name"`
		Elements    int64  `json:"In msg nelems"`
		GroupSize   int    `json:"Group size"`
		Group       string `json:"Process Group Name"`
	}
}

// nanos converts a time in microseconds with up to three decimals.
func nanos(t *testing.T, us json.Number) trace.Ticks {
	whole, fraction, _ := strings.Cut(string(us), ".")
	ns, err := strconv.ParseInt(whole+(fraction + "000")[:3], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return trace.Ticks(ns)
}

// events yields the objects in traceEvents. It finds their ends ten times as fast as encoding/json.
func events(file []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		_, rest, _ := bytes.Cut(file, []byte(`"traceEvents":`))
		depth, begin := 0, 0
		for i := 0; i < len(rest); i++ {
			switch rest[i] {
			case '"':
				for i++; rest[i] != '"'; i++ {
					if rest[i] == '\\' {
						i++
					}
				}
			case '{', '[':
				if depth++; depth == 2 {
					begin = i
				}
			case '}', ']':
				depth--
				if depth == 0 || depth == 1 && !yield(rest[begin:i+1]) {
					return
				}
			}
		}
	}
}

// readKineto adds the kernels and copies of a trace that were launched before the end of the last
// step, which are those that HTA counts.
func readKineto(t *testing.T, in io.Reader, r *breakdown.Rank) {
	file, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	var kernels []kinetoEvent
	launches := make(map[json.Number]trace.Ticks)
	lastEnd := trace.Ticks(0)
	for raw := range events(file) {
		var e kinetoEvent
		if !bytes.Contains(raw, []byte(`"correlation"`)) && !bytes.Contains(raw, []byte("ProfilerStep#")) {
			continue // such as events with a text as time
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		switch number, isStep := strings.CutPrefix(e.Name, "ProfilerStep#"); {
		case e.Ph != "X":
		case isStep && e.Cat == "user_annotation":
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.BeginStep(n, nanos(t, e.TS))
			lastEnd = max(lastEnd, nanos(t, e.TS)+nanos(t, e.Dur))
		case e.Cat == "kernel", e.Cat == "gpu_memcpy", e.Cat == "gpu_memset":
			kernels = append(kernels, e)
		case e.Args.Correlation != "":
			launches[e.Args.Correlation] = nanos(t, e.TS)
		}
	}
	for _, e := range kernels {
		launch, ok := launches[e.Args.Correlation]
		if !ok || launch > lastEnd {
			continue
		}
		stream, err := strconv.ParseUint(string(e.Args.Stream), 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		start := nanos(t, e.TS)
		r.Add(breakdown.Activity{
			Start: start, End: start + nanos(t, e.Dur), Launch: launch, Stream: trace.Thread(stream), Kind: breakdown.KindOf(e.Name),
		})
	}
}

func TestEqualsHTA(t *testing.T) {
	f, err := os.Open("testdata/hta.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var want htaRow
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		if testing.Short() && (want.Rank > 0 || want.Kernels > 10_000) {
			continue
		}
		t.Run(fmt.Sprintf("%s-%d", want.File, want.Rank), func(t *testing.T) {
			r := breakdown.NewRank(breakdown.Default(trace.Nanosecond))
			readKineto(t, openKineto(t, want.File, want.Rank), r)
			compareWithHTA(t, r.Finish(), &want)
		})
	}
}

func compareWithHTA(t *testing.T, got *breakdown.Result, want *htaRow) {
	tolerance := 0.0001
	near := func(what string, got trace.Ticks, want float64) {
		t.Helper()
		if us := trace.Nanosecond.Micros(got); math.Abs(us-want) > max(tolerance*want, 1) {
			t.Errorf("%s is %.3f µs, HTA has %.3f", what, us, want)
		}
	}
	if got.Activities != want.Kernels {
		t.Errorf("%d activities, HTA has %d", got.Activities, want.Kernels)
	}
	near("total", got.Total(), want.KernelTime)
	near("compute", got.Active(breakdown.Compute), want.ComputeTime)
	near("non-compute", got.ExposedCommunication()+got.ExposedMemory(), want.NonComputeTime)
	near("idle", got.IdleTime(), want.IdleTime)
	if comm := got.Active(breakdown.Communication); comm > 0 || want.Overlap > 0 {
		if percent := 100 * float64(got.Overlap()) / float64(comm); math.Abs(percent-want.Overlap) > 0.01 {
			t.Errorf("overlap is %.2f %%, HTA has %.2f %%", percent, want.Overlap)
		}
	}
	if want.File == "hta-ns-resolution" {
		// Its times are microseconds since 1970, of which a float64, as HTA uses, has steps of 0.25. Launches
		// about the end of the previous kernel change sides.
		tolerance = 0.05
	}
	for _, s := range got.Streams {
		idle := want.Streams[s.Thread]
		near(fmt.Sprintf("host wait of stream %d", s.Thread), s.Idle.HostWait, idle[0])
		near(fmt.Sprintf("kernel wait of stream %d", s.Thread), s.Idle.KernelWait-s.Overlap, idle[1])
		near(fmt.Sprintf("other idle time of stream %d", s.Thread), s.Idle.Other, idle[2])
	}
	if len(got.Streams) != len(want.Streams) {
		t.Errorf("%d streams, HTA has %d", len(got.Streams), len(want.Streams))
	}
}
