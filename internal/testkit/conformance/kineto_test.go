package conformance

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// call is a call of a function.
type call struct {
	name       string
	start, end int64
}

// eachCall calls f with the calls of a rank, thread by thread. Of those with the same times the outer one is first.
func (p *program) eachCall(rank trace.Rank, f func(thread int, c call)) {
	for _, l := range p.sorted() {
		if l.rank != rank {
			continue
		}
		var open []int // calls
		var calls []call
		for _, e := range p.lanes[l] {
			switch e.kind {
			case trace.Enter:
				open = append(open, len(calls))
				calls = append(calls, call{name: e.name, start: e.at})
			case trace.Exit:
				calls[open[len(open)-1]].end = e.at
				open = open[:len(open)-1]
			}
		}
		for _, c := range calls {
			f(int(l.thread), c)
		}
	}
}

// writeChrome writes a file for each rank, as PyTorch's profiler does. It has no messages and no hosts.
func writeChrome(t *testing.T, dir string, p *program) {
	t.Helper()
	for _, rank := range p.ranks() {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("rank%d.json", rank)))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		fmt.Fprintf(w, `{"distributedInfo": {"rank": %d, "world_size": %d}, "baseTimeNanoseconds": 0, "traceEvents": [`, rank, len(p.hosts))
		separator := ""
		p.eachCall(rank, func(thread int, c call) {
			fmt.Fprintf(w, `%s{"ph": "X", "cat": "cpu_op", "name": %q, "pid": %d, "tid": %d, "ts": %s, "dur": %s}`, separator, c.name,
				1000+rank, 1000+int(rank)+thread, trace.Nanosecond.MicrosText(trace.Ticks(c.start)),
				trace.Nanosecond.MicrosText(trace.Ticks(c.end-c.start)))
			separator = ",\n"
		})
		fmt.Fprint(w, "]}")
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
