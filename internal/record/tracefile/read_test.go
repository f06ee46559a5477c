package tracefile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/tracefile"
)

// load reads a record of testdata: cpu has messages; gpu is a kernel with its launch; open
// has calls that ended without an exit. chimbuko analyze wrote them, gpu from
// testdata/traces/gpu-BP5, the others from a larger trace of a heat equation; algo_params
// and source directories are removed.
func load(t testing.TB, name string) *provenance.Record {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r provenance.Record
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return &r
}

var recorded = []string{"cpu", "gpu", "open"}

// perfettoTrace has the fields of Perfetto's messages that the tests use.
type perfettoTrace struct {
	Packet []struct {
		Timestamp  uint64           `json:"timestamp,string"`
		Sequence   uint32           `json:"trusted_packet_sequence_id"`
		Flags      uint32           `json:"sequence_flags"`
		Event      *perfettoEvent   `json:"track_event"`
		Descriptor *trackDescriptor `json:"track_descriptor"`
	} `json:"packet"`
}

type trackDescriptor struct {
	UUID    uint64 `json:"uuid,string"`
	Parent  uint64 `json:"parent_uuid,string"`
	Name    string `json:"name"`
	Process *struct {
		PID  int32  `json:"pid"`
		Name string `json:"process_name"`
	} `json:"process"`
	Thread *struct {
		PID  int32  `json:"pid"`
		TID  int64  `json:"tid,string"`
		Name string `json:"thread_name"`
	} `json:"thread"`
	Counter *struct{} `json:"counter"`
}

type perfettoEvent struct {
	time        uint64
	Type        string           `json:"type"`
	Track       uint64           `json:"track_uuid,string"`
	Name        string           `json:"name"`
	Categories  []string         `json:"categories"`
	Annotations []map[string]any `json:"debug_annotations"`
	Count       *int64           `json:"counter_value,string"`
	CountFloat  *float64         `json:"double_counter_value"`
	Flows       []string         `json:"flow_ids"`
}

// args returns the annotations of an event, with integers as text.
func (e *perfettoEvent) args() map[string]any {
	args := map[string]any{}
	for _, a := range e.Annotations {
		for key, value := range a {
			if key != "name" {
				args[a["name"].(string)] = value
			}
		}
	}
	return args
}

// schema returns the type of a trace, from testdata/perfetto.proto.
var schema = sync.OnceValues(func() (protoreflect.MessageDescriptor, error) {
	c := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{"testdata"}}}
	files, err := c.Compile(context.Background(), "perfetto.proto")
	if err != nil {
		return nil, err
	}
	return files[0].Messages().ByName("Trace"), nil
})

// shownTrace is a decoded and valid trace of Perfetto.
type shownTrace struct {
	t      testing.TB
	tracks map[uint64]*trackDescriptor
	events []*perfettoEvent
	slices []*slice // sorted by begin
}

// slice is a slice with times in microseconds.
type slice struct {
	*perfettoEvent
	start, end uint64
	open       bool
	depth      int
}

func (s *slice) String() string {
	end := fmt.Sprint(s.end)
	if s.open {
		end = ""
	}
	return fmt.Sprintf("%s%s[%d,%s]", strings.Repeat(".", s.depth), s.Name, s.start, end)
}

// readTrace writes a record for Perfetto and reads the trace.
func readTrace(t testing.TB, r *provenance.Record) *shownTrace {
	t.Helper()
	var w bytes.Buffer
	if err := tracefile.WritePerfetto(&w, r); err != nil {
		t.Fatal(err)
	}
	return readPerfetto(t, w.Bytes())
}

// readPerfetto decodes a trace by the schema and checks its invariants.
func readPerfetto(t testing.TB, data []byte) *shownTrace {
	t.Helper()
	descriptor, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	message := dynamicpb.NewMessage(descriptor)
	if err := proto.Unmarshal(data, message); err != nil {
		t.Fatalf("trace: %v", err)
	}
	checkKnown(t, message)
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	var parsed perfettoTrace
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	s := &shownTrace{t: t, tracks: map[uint64]*trackDescriptor{}}
	for i := range parsed.Packet {
		p := &parsed.Packet[i]
		if p.Sequence != 1 || (p.Flags == 1) != (i == 0) || (p.Event == nil) == (p.Descriptor == nil) {
			t.Fatalf("packet %d is %+v", i, p)
		}
		if p.Event != nil {
			p.Event.time = p.Timestamp
			s.events = append(s.events, p.Event)
			continue
		}
		d := p.Descriptor
		if d.UUID == 0 || s.tracks[d.UUID] != nil || d.Process == nil && s.tracks[d.Parent] == nil || len(s.events) > 0 {
			t.Fatalf("descriptor %+v", d)
		}
		s.tracks[d.UUID] = d
	}
	s.nest()
	s.checkFlows()
	return s
}

// checkKnown fails if a message has a field that the schema does not have, or invalid text.
func checkKnown(t testing.TB, m protoreflect.Message) {
	t.Helper()
	if n := len(m.GetUnknown()); n > 0 {
		t.Fatalf("%s has %d bytes of unknown fields", m.Descriptor().Name(), n)
	}
	check := func(f protoreflect.FieldDescriptor, v protoreflect.Value) {
		switch f.Kind() {
		case protoreflect.MessageKind:
			checkKnown(t, v.Message())
		case protoreflect.StringKind:
			if !utf8.ValidString(v.String()) {
				t.Fatalf("%s is %q", f.FullName(), v.String())
			}
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !f.IsList() {
			check(f, v)
			return true
		}
		for i := range v.List().Len() {
			check(f, v.List().Get(i))
		}
		return true
	})
}

// nest pairs begins and ends of slices as Perfetto does: an end belongs to the last open
// slice of its track.
func (s *shownTrace) nest() {
	s.t.Helper()
	open := map[uint64][]*slice{}
	last := uint64(0)
	for _, e := range s.events {
		d := s.tracks[e.Track]
		if d == nil || e.time < last || e.time%1000 != 0 || (d.Counter != nil) != (e.Type == "TYPE_COUNTER") || d.Counter == nil &&
			d.Thread == nil {
			s.t.Fatalf("event %+v after the time %d on the track %+v", e, last, d)
		}
		last = e.time
		stack := open[e.Track]
		switch e.Type {
		case "TYPE_SLICE_BEGIN":
			c := &slice{perfettoEvent: e, start: e.time / 1000, open: true, depth: len(stack)}
			s.slices = append(s.slices, c)
			open[e.Track] = append(stack, c)
		case "TYPE_SLICE_END":
			if len(stack) == 0 {
				s.t.Fatalf("end without a slice at %d", e.time)
			}
			c := stack[len(stack)-1]
			c.open, c.end = false, e.time/1000
			open[e.Track] = stack[:len(stack)-1]
		}
	}
}

// checkFlows fails unless each arrow has two ends on two events.
func (s *shownTrace) checkFlows() {
	s.t.Helper()
	ends := map[string][]*perfettoEvent{}
	for _, e := range s.events {
		for _, f := range e.Flows {
			ends[f] = append(ends[f], e)
		}
	}
	for f, ends := range ends {
		if len(ends) != 2 || ends[0] == ends[1] {
			s.t.Fatalf("the flow %s has the ends %+v", f, ends)
		}
	}
}

// track returns the number of the track of a name.
func (s *shownTrace) track(name string) uint64 {
	s.t.Helper()
	for id, d := range s.tracks {
		if d.Name == name || d.Process != nil && d.Process.Name == name || d.Thread != nil && d.Thread.Name == name {
			return id
		}
	}
	s.t.Fatalf("no track %q", name)
	return 0
}

// where returns the names of the process and the thread of an event.
func (s *shownTrace) where(e *perfettoEvent) string {
	thread := s.tracks[e.Track]
	return s.tracks[thread.Parent].Process.Name + ", " + thread.Thread.Name
}

// find returns the events of a type and a name.
func (s *shownTrace) find(kind, name string) (found []*perfettoEvent) {
	for _, e := range s.events {
		if e.Type == kind && e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// call returns the slice of a call.
func (s *shownTrace) call(id string) *slice {
	s.t.Helper()
	var found *slice
	for _, c := range s.slices {
		if c.args()["event_id"] == id {
			if found != nil {
				s.t.Fatalf("duplicate call %s", id)
			}
			found = c
		}
	}
	if found == nil {
		s.t.Fatalf("no call %s", id)
	}
	return found
}

// arrow returns the two ends of an event's arrow, in order.
func (s *shownTrace) arrow(e *perfettoEvent) (from, to *perfettoEvent) {
	s.t.Helper()
	if len(e.Flows) != 1 {
		s.t.Fatalf("%s has the flows %v, want one", e.Name, e.Flows)
	}
	for _, other := range s.events {
		if slices.Contains(other.Flows, e.Flows[0]) {
			if from != nil {
				return from, other
			}
			from = other
		}
	}
	s.t.Fatalf("the flow of %s has one end", e.Name)
	return nil, nil
}
