package conformance

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// archive writes OTF2 archives.
type archive struct {
	order binary.ByteOrder
	// old leaves out the fields that were added since version 1.0.
	old bool
}

// chunk is the size of chunks, the smallest of the reference library.
const chunk = 256 << 10

// records are records of a file.
type records struct {
	*archive
	bytes.Buffer
	start int // of the current chunk
	count uint64
	first uint64 // number of the first event of the chunk
}

// number returns a compressed number.
func (a *archive) number(v uint64) []byte {
	var b [8]byte
	a.order.PutUint64(b[:], v)
	if a.order == binary.ByteOrder(binary.BigEndian) {
		digits := bytes.TrimLeft(b[:], "\x00")
		return append([]byte{byte(len(digits))}, digits...)
	}
	digits := bytes.TrimRight(b[:], "\x00")
	return append([]byte{byte(len(digits))}, digits...)
}

func (a *archive) u64(v uint64) []byte {
	var b [8]byte
	a.order.PutUint64(b[:], v)
	return b[:]
}

// mark is the mark of the order of bytes.
func (a *archive) mark() byte {
	if a.order == binary.ByteOrder(binary.BigEndian) {
		return '#'
	}
	return 'B'
}

// fields joins fields: bytes, compressed numbers, and texts.
func (a *archive) fields(all ...any) (b []byte) {
	for _, f := range all {
		switch f := f.(type) {
		case byte:
			b = append(b, f)
		case int:
			b = append(b, a.number(uint64(f))...)
		case uint64:
			b = append(b, a.number(f)...)
		case string:
			b = append(append(b, f...), 0)
		case nil: // undefined
			b = append(b, 255)
		}
	}
	return b
}

// open begins a chunk.
func (r *records) open() {
	r.start, r.first = r.Len(), r.count+1
	r.Write([]byte{3, r.mark()})
	r.Write(make([]byte, 16))
}

// close ends a chunk: the last one of a file, or one that is filled up.
func (r *records) close(last bool) {
	head := r.Bytes()[r.start+2:]
	r.order.PutUint64(head, r.first)
	r.order.PutUint64(head[8:], r.count)
	if last {
		r.Write([]byte{2, 1})
		return
	}
	r.Write(make([]byte, r.start+chunk-r.Len()))
}

// add adds a record with a length.
func (r *records) add(kind byte, fields ...any) {
	body := r.fields(fields...)
	if r.Len()+len(body)+2 > r.start+chunk-2 {
		r.close(false)
		r.open()
	}
	r.Write([]byte{kind, byte(len(body))})
	r.Write(body)
}

// event adds an event with its time.
func (r *records) event(at int64, record []byte) {
	if r.Len()+9+len(record) > r.start+chunk-2 {
		r.close(false)
		r.open()
	}
	r.Write(append([]byte{5}, r.u64(uint64(at))...))
	r.Write(record)
	r.count++
}

// write writes a program as an archive.
func (a *archive) write(t *testing.T, dir string, p *program) {
	t.Helper()
	files := make(map[string][]byte)
	regions, start, end := make(map[string]int), int64(1<<62), int64(0)
	ids := make(map[lane]int)
	for i, l := range p.sorted() {
		ids[l] = i
		for _, e := range p.lanes[l] {
			start, end = min(start, e.at), max(end, e.at)
			if _, ok := regions[e.name]; !ok && e.name != "" {
				regions[e.name] = len(regions)
			}
		}
	}
	for _, l := range p.sorted() {
		files["traces/"+strconv.Itoa(ids[l])+".evt"] = a.events(p.lanes[l], regions)
	}
	defs, count := a.definitions(p, ids, regions, start, end)
	files["traces.def"] = defs

	version := []byte{3, 0, 2}
	if a.old {
		version = []byte{1, 5, 1}
	}
	anchor := append([]byte{3, a.mark()}, a.fields("OTF2", byte(3), byte(2))...)
	anchor = append(anchor, version...)
	anchor = append(append(anchor, a.u64(chunk)...), a.u64(chunk)...)
	anchor = append(anchor, 1, 1)
	anchor = append(append(anchor, a.u64(uint64(len(p.lanes)))...), a.u64(count)...)
	anchor = append(anchor, a.fields("machine", "a test", "")...)
	anchor = append(anchor, make([]byte, 4+8+8)...) // properties, number of the archive, snapshots and thumbnails
	files["traces.otf2"] = append(anchor, 2, 1)

	if err := os.MkdirAll(filepath.Join(dir, "traces"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// events returns the file of a location.
func (a *archive) events(events []event, regions map[string]int) []byte {
	r := &records{archive: a}
	r.open()
	for _, e := range events {
		var body []byte
		switch e.kind {
		case trace.Enter:
			body = append([]byte{12}, a.number(uint64(regions[e.name]))...)
		case trace.Exit:
			body = append([]byte{13}, a.number(uint64(regions[e.name]))...)
		case trace.Send, trace.Recv:
			kind := byte(14)
			if e.kind == trace.Recv {
				kind = 18
			}
			f := a.fields(int(e.partner), 0, int(e.tag), e.bytes)
			body = append([]byte{kind, byte(len(f))}, f...)
		default:
			continue
		}
		r.event(e.at, body)
	}
	r.close(true)
	return r.Bytes()
}

// definitions returns the file of global definitions, and their number.
func (a *archive) definitions(p *program, ids map[lane]int, regions map[string]int, start, end int64) (file []byte, count uint64) {
	r := &records{archive: a}
	r.open()
	def := func(kind byte, fields ...any) {
		count++
		r.add(kind, fields...)
	}
	strings := make(map[string]int)
	text := func(s string) int {
		id, ok := strings[s]
		if !ok {
			id = len(strings)
			strings[s] = id
			def(10, id, s)
		}
		return id
	}
	// since returns fields, or none in an old archive.
	since := func(fields ...any) []any {
		if a.old {
			return nil
		}
		return fields
	}
	join := func(a []any, b ...any) []any { return append(a, b...) }

	def(5, join([]any{1_000_000_000, uint64(start), uint64(end - start)}, since(uint64(start))...)...)
	def(12, 0, text("cluster"), text("machine"), nil)
	nodes := make(map[string]int)
	for _, rank := range p.ranks() {
		host := p.hosts[rank]
		if _, ok := nodes[host]; !ok {
			nodes[host] = len(nodes) + 1
			def(12, nodes[host], text(host), text("node"), 0)
		}
		def(13, join([]any{int(rank), text("rank " + strconv.Itoa(int(rank))), byte(1), nodes[host]}, since(nil)...)...)
	}
	var world []any
	var members []any
	for _, l := range p.sorted() {
		def(14, ids[l], text("thread "+strconv.Itoa(int(l.thread))), byte(1), len(p.lanes[l]), int(l.rank))
		if l.thread == 0 {
			members = append(members, int(l.rank))
			world = append(world, ids[l])
		}
	}
	for name, id := range regions {
		def(15, join([]any{id, text(name), text(""), byte(1), nil, 0, 0}, since(text(name), byte(1), byte(1), 0)...)...)
	}
	def(18, join(join([]any{0, text(""), byte(6), len(world)}, world...), since(byte(4), byte(4), 0)...)...)
	def(18, join(join([]any{1, text(""), byte(4), len(members)}, members...), since(byte(5), byte(4), 0)...)...)
	def(22, join([]any{0, text("MPI_COMM_WORLD"), 1, nil}, since(0)...)...)
	r.close(true)
	return r.Bytes(), count
}

// TestArchivesOfTheReferenceLibrary checks that otf2-print reads what these tests write.
func TestArchivesOfTheReferenceLibrary(t *testing.T) {
	program, err := exec.LookPath("otf2-print")
	if err != nil {
		t.Skip("SKIP: there is no otf2-print (Debian package otf2-tools)")
	}
	p := small()
	for _, a := range []archive{{order: binary.LittleEndian}, {order: binary.BigEndian}, {order: binary.LittleEndian, old: true}} {
		dir := t.TempDir()
		a.write(t, dir, p)
		out, err := exec.CommandContext(t.Context(), program, filepath.Join(dir, "traces.otf2")).CombinedOutput()
		if err != nil {
			t.Errorf("%+v: %v: %s", a, err, out)
			continue
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 3 && strings.Contains("ENTER LEAVE MPI_SEND MPI_RECV", f[0]) {
				got = append(got, strings.Join(f, " "))
			}
		}
		want := []string{
			`ENTER 0 1000 Region: "main" <0>`,
			`MPI_SEND 0 1200 Receiver: 1 ("thread 0" <1>), Communicator: "MPI_COMM_WORLD" <0>, Tag: 7, Length: 300`,
			`MPI_RECV 1 1300 Sender: 0 ("thread 0" <0>), Communicator: "MPI_COMM_WORLD" <0>, Tag: 7, Length: 300`,
			`LEAVE 0 70000 Region: "main" <0>`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: got\n%s\nwant\n%s", a, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// small returns a program of two ranks with a message.
func small() *program {
	return &program{
		hosts: map[trace.Rank]string{0: "node00", 1: "node01"},
		lanes: map[lane][]event{
			{0, 0}: {
				{kind: trace.Enter, at: 1000, name: "main"},
				{kind: trace.Send, at: 1200, partner: 1, tag: 7, bytes: 300},
				{kind: trace.Exit, at: 70000, name: "main"},
			},
			{1, 0}: {{kind: trace.Recv, at: 1300, partner: 0, tag: 7, bytes: 300}},
		},
	}
}
