package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// exchanges returns calls of a function that sends 1000 bytes and receives a message of an
// impossible size, as TAU records MPI_Sendrecv. One call is slow.
func exchanges() tracetest.Step {
	s := tracetest.Step{Attrs: append(tracetest.EventTypes, [2]string{"timer 7", "MPI_Sendrecv()"}, [2]string{"MetaData:0:0:Hostname", "node1"})}
	now := uint64(1_700_000_000_000_000)
	for i := range uint64(2000) {
		took := 100 + i*7%10
		if i == 1500 {
			took = 50_000
		}
		s.Funcs = append(s.Funcs, [6]uint64{0, 0, 0, 0, 7, now}, [6]uint64{0, 0, 0, 1, 7, now + took})
		s.Comms = append(s.Comms, [8]uint64{0, 0, 0, 2, 0, 1, 1000, now + 1}, [8]uint64{0, 0, 0, 3, 0, 1, 0xffffffffec9d609d, now + took - 1})
		now += took + 10
	}
	return s
}

func TestImpossibleMessageSizesAreUnknown(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	dir := t.TempDir()
	path := tracetest.WriteBP4(t, dir, []tracetest.Step{exchanges()})
	const note = "2,000 messages of an impossible size"
	dump := func(format, send, recv string) {
		t.Helper()
		r := run(t, "trace", "dump", "--kind", "message", "--limit", "2", "--format", format, path)
		if r.code != 0 || !strings.Contains(r.stderr, note) {
			t.Errorf("%s: exit code %d, %q", format, r.code, r.stderr)
		}
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		for i, want := range []string{send, recv} {
			if got := lines[len(lines)-2+i]; !strings.HasSuffix(got, want) {
				t.Errorf("%s: got %q, want %q at its end", format, got, want)
			}
		}
	}
	dump("text", "send     to 1, tag 0, 1000 bytes", "recv     from 1, tag 0, unknown bytes")
	dump("jsonl", `"bytes":1000}`, `"bytes":null}`)
	dump("csv", ",1,0,1000,", ",1,0,,")
	if text := must(t, "trace", "info", path); !strings.Contains(text, note) {
		t.Errorf("trace info: got %s", text)
	}

	to := filepath.Join(dir, "run")
	if text := must(t, "analyze", path, "--out", to, "--records", "both"); !strings.Contains(text, note) {
		t.Errorf("analyze: got %s", text)
	}
	rows := queryJSON(t, "query", to, "SELECT type, min(bytes) AS least, max(bytes) AS most, count(*) AS n FROM messages GROUP BY type ORDER BY type")
	if len(rows) != 2 || rows[0]["least"] != nil || rows[0]["most"] != nil || rows[0]["n"] == nil ||
		fmt.Sprint(rows[1]["least"], rows[1]["most"]) != "1000 1000" {
		t.Errorf("messages: %v", rows)
	}
	anomalies := queryJSON(t, "anomalies", to)
	if len(anomalies) != 1 {
		t.Fatalf("anomalies: %v", anomalies)
	}
	event := fmt.Sprint(anomalies[0]["event_id"])
	if text := must(t, "event", to, event, "--width", "200"); !strings.Contains(text, "← unknown size from rank 1") ||
		!strings.Contains(text, "→ 1.0 kB to rank 1") {
		t.Errorf("event: got %s", text)
	}
	document := must(t, "event", to, event, "--json")
	if !strings.Contains(document, `"bytes": null`) || strings.Contains(document, "1844674407") {
		t.Errorf("event --json: got %s", document)
	}
	imported := filepath.Join(dir, "imported")
	if r := run(t, "import", to, "--out", imported); r.code != 0 {
		t.Errorf("import: %s", r.stderr)
	}
	same(t, "imported", must(t, "event", imported, event, "--json"), document)
}
