package simulate_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/lab/scenario"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// adios2Step is a step as read.py prints it.
type adios2Step struct {
	Step int
	Vars map[string]struct {
		Type   string
		Shape  []uint64
		Blocks []struct {
			Start, Count []uint64
			Hash, Value  string
		}
	}
	Attrs map[string]string
}

// TestADIOS2ReadsSimulation compares all that ADIOS2 itself reads
// with the events, names and facts of the simulation.
func TestADIOS2ReadsSimulation(t *testing.T) {
	if tracetest.WithoutRace(t) {
		return
	}
	python := tracetest.Python(t, "adios2", "numpy")
	for _, s := range []*scenario.Scenario{troubled(t, scenario.SlowRank), builtin(t, "workflow", 8, 3), builtin(t, "slow-link", 6, 2)} {
		dir, _ := write(t, s, nil)
		for i, r := range record(t, s) {
			if i%3 > 0 {
				continue // the others take long and are no different
			}
			cmd := exec.CommandContext(t.Context(), python, tracetest.Root("internal", "source", "bpwriter", "testdata", "read.py"),
				datasetOf(dir, r))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("read.py: %v\n%s", err, stderr.String())
			}
			compareADIOS2(t, s, r, json.NewDecoder(bytes.NewReader(out)))
		}
	}
}

func compareADIOS2(t *testing.T, s *scenario.Scenario, r *traced, lines *json.Decoder) {
	t.Helper()
	for i := range r.steps {
		var seen adios2Step
		if err := lines.Decode(&seen); err != nil {
			t.Fatalf("rank %d step %d: ADIOS2: %v", r.rank, i, err)
		}
		got := make(map[string]string)
		for name, v := range seen.Vars {
			text := fmt.Sprintf("%s %v", v.Type, v.Shape)
			for _, b := range v.Blocks {
				text += fmt.Sprintf(" %v %v %s", b.Start, b.Count, b.Hash+b.Value)
			}
			got[name] = text
		}
		if want := variables(s, r, i); !maps.Equal(got, want) {
			for _, name := range slices.Sorted(maps.Keys(want)) {
				if got[name] != want[name] {
					t.Errorf("rank %d step %d: ADIOS2 reads %s as %q, want %q", r.rank, i, name, got[name], want[name])
				}
			}
			t.Errorf("rank %d step %d: ADIOS2 reads %d variables, want %d", r.rank, i, len(got), len(want))
		}
		if want := attributes(r); !maps.Equal(seen.Attrs, want) {
			t.Errorf("rank %d step %d: ADIOS2 reads the attributes %v, want %v", r.rank, i, seen.Attrs, want)
		}
	}
	if err := lines.Decode(new(adios2Step)); !errors.Is(err, io.EOF) {
		t.Errorf("rank %d: ADIOS2 reads more steps: %v", r.rank, err)
	}
}

// variables returns the expected content of a step, by docs/formats/tau.md.
func variables(s *scenario.Scenario, r *traced, step int) map[string]string {
	of := &r.steps[step]
	count := func(list func(func(trace.FuncID, string) bool)) (n int) {
		list(func(trace.FuncID, string) bool { n++; return true })
		return n
	}
	counters := 0
	for range r.names.Counters() {
		counters++
	}
	all := make(map[string]string)
	number := func(name, typ string, n int) { all[name] = typ + " []" + " [] [] " + strconv.Itoa(n) }
	number("program_count", "int32", 1)
	number("comm_rank_count", "int32", s.Programs[r.program].Ranks)
	number("thread_count", "int32", int(of.Batches[len(of.Batches)-1].Thread)+1)
	number("event_type_count", "int32", 4)
	number("timer_count", "int32", count(r.names.Funcs()))
	number("counter_count", "int32", counters)
	number("timer_event_count", "uint64", of.Funcs)
	number("counter_event_count", "uint64", of.Counters)
	number("comm_count", "uint64", of.Comms)
	table := func(name string, columns, rows int, row func(trace.Thread, *trace.Event) []uint64) {
		if rows == 0 {
			return
		}
		data := make([]byte, rows*columns*8)
		for _, b := range of.Batches {
			for j := range b.Events {
				values := row(b.Thread, &b.Events[j])
				for k, v := range values {
					binary.LittleEndian.PutUint64(data[(int(b.Events[j].Row)*columns+k)*8:], v)
				}
			}
		}
		all[name] = fmt.Sprintf("uint64 [%d %d] [0 0] [%d %d] %x", rows, columns, rows, columns, sha256.Sum256(data))
	}
	rank := uint64(r.rank)
	kinds := map[trace.Kind]uint64{trace.Enter: 0, trace.Exit: 1, trace.Send: 2, trace.Recv: 3}
	table("event_timestamps", 6, of.Funcs, func(thread trace.Thread, e *trace.Event) []uint64 {
		if e.Kind != trace.Enter && e.Kind != trace.Exit {
			return nil
		}
		return []uint64{0, rank, uint64(thread), kinds[e.Kind], uint64(e.ID), uint64(e.Time)}
	})
	table("comm_timestamps", 8, of.Comms, func(thread trace.Thread, e *trace.Event) []uint64 {
		if e.Kind != trace.Send && e.Kind != trace.Recv {
			return nil
		}
		return []uint64{0, rank, uint64(thread), kinds[e.Kind], uint64(e.Tag), uint64(e.ID), e.Value, uint64(e.Time)}
	})
	table("counter_values", 6, of.Counters, func(thread trace.Thread, e *trace.Event) []uint64 {
		if e.Kind != trace.Count {
			return nil
		}
		return []uint64{0, rank, uint64(thread), uint64(e.ID), e.Value, uint64(e.Time)}
	})
	return all
}

// attributes returns what names and facts a dataset has to hold.
func attributes(r *traced) map[string]string {
	all := map[string]string{
		"program_name 0": r.programName,
		"event_type 0":   "ENTRY", "event_type 1": "EXIT", "event_type 2": "SEND", "event_type 3": "RECV",
	}
	for id, name := range r.names.Funcs() {
		all[fmt.Sprintf("timer %d", id)] = name
	}
	for id, name := range r.names.Counters() {
		all[fmt.Sprintf("counter %d", id)] = name
	}
	for _, m := range r.steps[0].Metadata {
		all[fmt.Sprintf("MetaData:%d:%d:%s", m.Rank, m.Thread, m.Key)] = m.Value
	}
	return all
}
