package otf2_test

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/otf2"
)

// record returns a record of less than 255 bytes.
func record(kind byte, fields ...[]byte) []byte {
	body := slices.Concat(fields...)
	return append([]byte{kind, byte(len(body))}, body...)
}

// number returns a compressed number.
func number(v uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{8}, v)
}

// threads writes an archive of a process, given the times of the events of its threads, and returns the anchor file.
func threads(t *testing.T, times ...[]uint64) string {
	t.Helper()
	dir := t.TempDir()
	definitions := [][]byte{
		record(5, number(1e9), number(1), number(1<<40)),
		record(10, number(0), []byte("work\x00")),
		record(13, number(0), number(0), []byte{1}, number(1<<32-1)),
		record(15, number(0), number(0), number(0), []byte{0}, number(1<<32-1), number(0), number(0)),
	}
	files := map[string][]byte{}
	for id, all := range times {
		definitions = append(definitions, record(14, number(uint64(id)), number(0), []byte{1}, number(uint64(len(all))), number(0)))
		var events []byte
		for i, time := range all {
			events = binary.LittleEndian.AppendUint64(append(events, 5), time)
			events = append(events, 12+byte(i%2), 0) // entry, exit
		}
		files[filepath.Join("traces", strconv.Itoa(id)+".evt")] = local(events)
	}
	files["traces.def"] = local(definitions...)
	const chunk = 16 << 20
	anchor := append([]byte("\x03BOTF2\x00\x00\x00\x03\x00\x00"), binary.LittleEndian.AppendUint64(nil, chunk)...)
	anchor = append(binary.LittleEndian.AppendUint64(anchor, chunk), 1, 1)
	anchor = binary.LittleEndian.AppendUint64(anchor, uint64(len(times)))
	anchor = binary.LittleEndian.AppendUint64(anchor, uint64(len(definitions)))
	files["traces.otf2"] = append(anchor, "machine\x00creator\x00"...)
	for name, data := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "traces.otf2")
}

// TestStepsFollowTime reads threads with many and with few events, and with pauses: steps must end at about the same time in all.
func TestStepsFollowTime(t *testing.T) {
	const end, dense = 100_000_000, 200_000
	var busy, bursts, pauses []uint64
	for i := range uint64(dense) {
		busy = append(busy, 1+i*end/dense)
		bursts = append(bursts, 1+i/1000*1000*end/dense+i%1000)
		pauses = append(pauses, 1+i/50_000*50_000*end/dense+i%50_000)
	}
	all := [][]uint64{busy, bursts, pauses}
	for n := range uint64(60) {
		var sparse []uint64
		for i := range n {
			sparse = append(sparse, 1+i*end/n, 1+i*end/n)
		}
		all = append(all, sparse)
	}
	a, err := otf2.Open(threads(t, all...))
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Steps(0, new(tally.Tally))
	if err != nil {
		t.Fatal(err)
	}
	events, steps, last, apart := 0, 0, trace.Ticks(0), trace.Ticks(0)
	for {
		step, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		steps++
		latest := last
		for _, b := range step.Batches {
			events += len(b.Events)
			apart = max(apart, last-b.Events[0].Time)
			latest = max(latest, b.Events[len(b.Events)-1].Time)
		}
		last = latest
	}
	if want := 3*dense + 60*59; events != want || steps < 8 {
		t.Errorf("%d events in %d steps, want %d in 9 or 10", events, steps, want)
	}
	if apart > end/50 {
		t.Errorf("a step has events %d ns before the end of the step before it", apart)
	}
	t.Logf("%d steps, %d ns apart", steps, apart)
}
