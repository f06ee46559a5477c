package otf2_test

import (
	"bufio"
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/otf2"
)

// TestEventsAsReferenceLibrary compares with the program otf2-print of the reference library, location by location.
func TestEventsAsReferenceLibrary(t *testing.T) {
	program, err := exec.LookPath("otf2-print")
	if err != nil {
		t.Skip("SKIP: there is no otf2-print (Debian package otf2-tools)")
	}
	archives := map[string]func(t *testing.T) string{
		"calls":   func(*testing.T) string { return calls },
		"records": func(*testing.T) string { return records },
		"cuda":    func(*testing.T) string { return "testdata/launches/cuda" },
		"eztrace": func(*testing.T) string { return eztrace },
		"mi300": func(t *testing.T) string {
			return filepath.Dir(unpacked(t, "mi300-example"))
		},
		"hpcg-stall": func(t *testing.T) string {
			if testing.Short() {
				t.Skip("SKIP: the small archives suffice")
			}
			return filepath.Dir(unpacked(t, "hpcg-stall-OTF2"))
		},
	}
	for name, path := range archives {
		t.Run(name, func(t *testing.T) {
			dir := path(t)
			compare(t, program, dir)
		})
	}
}

// fact is an event in a form that is cheap to compare.
type fact struct {
	time trace.Ticks // or of the archive's clock
	kind trace.Kind
	any  bool   // the name and the value are unknown
	name string // of the function or counter
	of   int64  // partner of a message
	tag  int64
	size uint64 // or value of a counter
}

// compare compares the events of an archive with those that the reference library prints.
func compare(t *testing.T, program, dir string) {
	t.Helper()
	want := printed(t, program, dir)
	got := make(map[placeOf][]fact)
	names := make(map[trace.FuncID]string) // without the source
	a, _, err := readEvents(t, dir, func(n *trace.Names, b *trace.Batch, e *trace.Event) {
		f := fact{time: e.Time, kind: e.Kind}
		switch e.Kind {
		case trace.Send, trace.Recv:
			f.of, f.tag, f.size = int64(e.Partner()), int64(e.Tag), e.Value
		case trace.Count:
			if f.name, _ = n.Counter(b.Rank, e.Counter()); f.name == "Bytes received in collective call" {
				return // with the bytes sent
			}
			f.size = e.Value
		default:
			if _, ok := names[e.Func()]; !ok {
				name, _ := n.Func(b.Rank, e.Func())
				names[e.Func()], _, _ = strings.Cut(name, " [{")
			}
			f.name = names[e.Func()]
		}
		place := placeOf{b.Rank, b.Thread}
		got[place] = append(got[place], f)
	})
	if err != nil {
		t.Fatal(err)
	}
	location := a.Locations()
	if len(got) != len(want) {
		t.Errorf("%d locations, want %d", len(got), len(want))
	}
	for place, events := range got {
		id := location[strconv.Itoa(int(place.rank))+":"+strconv.Itoa(int(place.thread))]
		if len(events) != len(want[id]) {
			t.Fatalf("location %s: %d events, want %d", id, len(events), len(want[id]))
		}
		for i, of := range want[id] {
			of.time = a.Time(uint64(of.time))
			if of.any {
				of.name, of.size, of.any = events[i].name, events[i].size, false
			}
			if events[i] != of {
				t.Fatalf("location %s: event %d is %+v, want %+v", id, i, events[i], of)
			}
		}
	}
}

type placeOf struct {
	rank   trace.Rank
	thread trace.Thread
}

// printed returns the events that the reference library prints, by location.
func printed(t *testing.T, program, dir string) map[string][]fact {
	t.Helper()
	anchor, _ := otf2.AnchorOf(dir)
	cmd := exec.CommandContext(t.Context(), program, anchor)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := printer{names: make(map[string]string)}
	want := make(map[string][]fact)
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		// Event, location and time are in columns of fixed width; attributes follow.
		kind, rest := word(lines.Bytes())
		location, rest := word(rest)
		time, text := word(rest)
		at, err := strconv.ParseInt(string(time), 10, 64)
		if err != nil || len(kind) == 0 || lines.Bytes()[0] == ' ' {
			continue // a title, or attributes of the last event
		}
		id := p.intern(location)
		want[id] = p.add(want[id], string(kind), trace.Ticks(at), bytes.TrimLeft(text, " "))
	}
	if err := errors.Join(lines.Err(), cmd.Wait(), p.err); err != nil {
		t.Fatal(err)
	}
	return want
}

// word returns the first word of a line, and the rest.
func word(line []byte) (first, rest []byte) {
	line = bytes.TrimLeft(line, " ")
	if n := bytes.IndexByte(line, ' '); n >= 0 {
		return line[:n], line[n:]
	}
	return line, nil
}

// printer reads the attributes of printed events.
type printer struct {
	names map[string]string
	err   error
}

// intern returns a text, without allocating memory for one that was seen before.
func (p *printer) intern(text []byte) string {
	if s, ok := p.names[string(text)]; ok {
		return s
	}
	s := string(text)
	p.names[s] = s
	return s
}

// number returns the number after a text.
func (p *printer) number(text []byte, after string) uint64 {
	_, digits, _ := bytes.Cut(text, []byte(after))
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	v, err := strconv.ParseUint(string(digits[:n]), 10, 64)
	if err != nil && p.err == nil {
		p.err = errors.New("no number after " + after + " in " + string(text))
	}
	return v
}

// add adds the events that a printed record gives.
func (p *printer) add(to []fact, kind string, at trace.Ticks, text []byte) []fact {
	counter := func(name, after string) []fact {
		return append(to, fact{time: at, kind: trace.Count, name: name, size: p.number(text, after)})
	}
	switch kind {
	case "BUFFER_FLUSH":
		const name = "(flush of the trace buffer)"
		end := trace.Ticks(p.number(text, "Stop Time: "))
		return append(to, fact{time: at, kind: trace.Enter, name: name}, fact{time: end, kind: trace.Exit, name: name})
	case "RMA_PUT":
		return counter("Bytes of remote put", "Bytes: ")
	case "RMA_GET":
		return counter("Bytes of remote get", "Bytes: ")
	case "IO_OPERATION_COMPLETE":
		return counter("Bytes of I/O operation", "Bytes Result: ")
	case "ENTER", "LEAVE", "CALLING_CONTEXT_ENTER", "CALLING_CONTEXT_LEAVE":
		f := fact{time: at, kind: trace.Enter}
		if strings.HasSuffix(kind, "LEAVE") {
			f.kind = trace.Exit
		}
		_, name, ok := bytes.Cut(text, []byte(`: "`))
		name, _, _ = bytes.Cut(name, []byte(`" <`))
		name, _, _ = bytes.Cut(name, []byte(" [{"))
		f.name, f.any = p.intern(name), !ok // TAU enters regions that it does not define
		return append(to, f)
	case "MPI_SEND", "MPI_ISEND":
		return append(to, p.message(fact{time: at, kind: trace.Send}, "Receiver: ", text))
	case "MPI_RECV", "MPI_IRECV":
		return append(to, p.message(fact{time: at, kind: trace.Recv}, "Sender: ", text))
	case "MPI_COLLECTIVE_END", "NON_BLOCKING_COLLECTIVE_COMPLETE":
		return counter("Bytes sent in collective call", "Sent: ")
	case "PARAMETER_UINT64":
		if bytes.HasPrefix(text, []byte(`Parameter: "callsite id"`)) {
			return append(to, fact{time: at, kind: trace.Count, any: true}) // see TestLaunches
		}
	case "METRIC":
		return p.metric(to, at, text)
	}
	return to
}

// message returns a message with its partner and size.
func (p *printer) message(f fact, partner string, text []byte) fact {
	f.of, f.tag, f.size = int64(p.number(text, partner)), int64(p.number(text, "Tag: ")), p.number(text, "Length: ")
	return f
}

// metric adds the values of a metric, each printed as ("name" <number>; TYPE; value).
func (p *printer) metric(to []fact, at trace.Ticks, text []byte) []fact {
	_, text, _ = bytes.Cut(text, []byte(`("`))
	for len(text) > 0 {
		var value []byte
		value, text, _ = bytes.Cut(text, []byte(`, ("`))
		name, rest, _ := bytes.Cut(value, []byte(`" <`))
		digits, _, ok := bytes.Cut(rest[bytes.LastIndexByte(rest, ' ')+1:], []byte(")"))
		f := fact{time: at, kind: trace.Count, name: p.intern(name)}
		v, err := strconv.ParseUint(string(digits), 10, 64)
		if err != nil { // negative, or a fraction
			var fraction float64
			if fraction, err = strconv.ParseFloat(string(digits), 64); err == nil {
				v = uint64(max(0, fraction) + 0.5)
			}
		}
		if err != nil || !ok {
			p.err = errors.New("no metric: " + string(value))
		}
		f.size = v
		to = append(to, f)
	}
	return to
}
