package sst

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
)

// The messages of a writer, with fewer fields than ADIOS2 has: readers go by
// names.
var (
	dpResponse = message(structure(dpResponseName, 16,
		number("writer_response_condition", 4, 0), field("writer_data_plane", "string", 8, 8)))
	response = message(
		structure(responseName, 40,
			number("WriterResponseCondition", 4, 0), number("WriterCohortSize", 4, 4), field("WriterConfigParams", "*SstParams", 16, 8),
			number("NextStepNumber", 8, 16), field("cp_WriterInfo", "(*cp_writer)[WriterCohortSize]", 16, 24),
			field("dp_WriterInfo", "(*EvpathWriterContactInfo)[WriterCohortSize]", 16, 32)),
		structure("SstParams", 16, number("MarshalMethod", 4, 0), number("CPCommPattern", 4, 4),
			number("StepDistributionMode", 4, 8), number("IsRowMajor", 4, 12)),
		structure("cp_writer", 16, field("ContactInfo", "string", 8, 0), number("WriterID", 8, 8)),
		structure("EvpathWriterContactInfo", 16, field("ContactString", "string", 8, 0), number("writer_ID", 8, 8)))
	timestep = message(
		structure(metadataName, 48,
			number("RS_Stream", 8, 0), number("timestep", 8, 8), number("cohort_size", 4, 16), number("preload_mode", 4, 20),
			field("formats", "*FFSFormatBlock", 40, 24), field("metadata", "SstBlock[cohort_size]", 16, 32),
			field("attribute_data", "SstBlock[cohort_size]", 16, 40)),
		structure("FFSFormatBlock", 40,
			field("FormatServerRep", "char[FormatServerRepLen]", 1, 0), number("FormatServerRepLen", 8, 8),
			field("FormatIDRep", "char[FormatIDRepLen]", 1, 16), number("FormatIDRepLen", 8, 24), field("Next", "*FFSFormatBlock", 40, 32)),
		structure("SstBlock", 16, number("BlockSize", 8, 0), field("BlockData", "char[BlockSize]", 1, 8)))
	readReply = message(structure(replyName, 40,
		number("Timestep", 8, 0), number("DataLength", 8, 8), number("RS_Stream", 8, 16),
		field("Data", "char[DataLength]", 1, 24), number("NotifyCondition", 4, 32)))
	writerClose = message(structure(closeName, 16, number("RS_Stream", 8, 0), number("FinalTimestep", 8, 8)))

	// The metadata of a step with one array of numbers.
	stepFormat = message(
		structure("MetaData", 80, number("BitFieldCount", 8, 0), field("BitField", "integer[BitFieldCount]", 8, 8),
			number("DataBlockSize", 8, 16), field("BPG_8_8_numbers", "MetaArray", 56, 24)),
		structure("MetaArray", 56, number("Dims", 8, 0), number("BlockCount", 8, 8), number("DBCount", 8, 16),
			field("Shape", "integer[Dims]", 8, 24), field("Count", "integer[DBCount]", 8, 32),
			field("Offset", "integer[DBCount]", 8, 40), field("DataBlockLocation", "integer[BlockCount]", 8, 48)))
)

// standIn is one rank of a writer that a test plays.
type standIn struct {
	t       *testing.T
	l       net.Listener
	manager uint32
	*conn           // with the reader, after accept
	hello   [4]byte // its first bytes
	reader  handshake
}

func newStandIn(t *testing.T, manager uint32) *standIn {
	return &standIn{t: t, l: listen(t), manager: manager}
}

func (w *standIn) contact() string {
	return writeContact(w.t, contact{writer: 77, address: addressOf(w.l, w.manager)})
}

// accept takes the reader's connection and shakes hands, as manager.
func (w *standIn) accept(manager uint32) {
	w.t.Helper()
	socket, err := w.l.Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = socket.Close() }) // it is over
	if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	w.conn = &conn{
		Conn: socket, formats: make(map[ffs.ID]*ffs.Format), requested: make(map[ffs.ID]uint32), announced: make(map[*outgoing]bool),
		frames: frames{r: bufio.NewReader(socket), pool: &pool{}, expected: func() int64 { return 0 }},
	}
	if _, err := io.ReadFull(w.frames.r, w.hello[:]); err != nil {
		w.t.Fatal(err)
	}
	fr, err := w.frames.next()
	if err != nil || fr.handshake == nil {
		w.t.Fatalf("got %v and the error %v, want a handshake", fr, err)
	}
	w.reader = *fr.handshake
	if _, err := w.Write(handshake{manager: manager, answer: true}.append(nil)); err != nil {
		w.t.Fatal(err)
	}
}

// expect receives a message of that name.
func (w *standIn) expect(name string) *incoming {
	w.t.Helper()
	rec, _, err := w.receive()
	if err != nil {
		w.t.Fatalf("waiting for %s: %v", name, err)
	}
	if rec.Format.Name != name {
		w.t.Fatalf("the reader sent %s, want %s", rec.Format.Name, name)
	}
	return &incoming{Record: rec}
}

func (w *standIn) say(m *outgoing, v ffs.Values) {
	w.t.Helper()
	if err := w.send(m, v); err != nil {
		w.t.Fatal(err)
	}
}

// left waits until the reader has closed the connection, and fails if it sends
// anything but a goodbye.
func (w *standIn) left() {
	w.t.Helper()
	for {
		rec, _, err := w.receive()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isCut(err) {
			return
		}
		if err != nil {
			w.t.Fatalf("the reader did not leave: %v", err)
		}
		if rec.Format.Name != "ReaderClose" {
			w.t.Errorf("the reader sent %s before it left", rec.Format.Name)
		}
	}
}

// params are those of a stream that can be read.
func params(change ffs.Values) []ffs.Values {
	p := ffs.Values{"MarshalMethod": uint64(marshalBP5), "IsRowMajor": uint64(1)}
	maps.Copy(p, change)
	return []ffs.Values{p}
}

// welcome answers a reader's first messages.
func welcome(plane string, change ffs.Values, ranks ...*standIn) {
	w := ranks[0]
	w.t.Helper()
	w.accept(w.manager)
	if q := w.expect("DPQuery"); q.uint("writer_ID") != 77 {
		w.t.Errorf("the reader requests stream %d", q.uint("writer_ID"))
	}
	w.say(dpResponse, ffs.Values{"writer_response_condition": uint64(conditionPlane), "writer_data_plane": plane})
	if plane != dataPlane {
		return
	}
	w.expect("ReaderRegister")
	var cp, dp []ffs.Values
	for i, r := range ranks {
		cp = append(cp, ffs.Values{"ContactInfo": addressOf(r.l, r.manager).encode(), "WriterID": uint64(100 + i)})
		dp = append(dp, ffs.Values{"ContactString": "", "writer_ID": uint64(200 + i)})
	}
	w.say(response, ffs.Values{
		"WriterResponseCondition": uint64(conditionRegister), "WriterCohortSize": uint64(len(ranks)), "WriterConfigParams": params(change)[0],
		"cp_WriterInfo": cp, "dp_WriterInfo": dp,
	})
}

// metadataOf is the metadata of a step in which a writer has so many numbers.
func metadataOf(t *testing.T, n uint64) ffs.Values {
	t.Helper()
	return metadataWith(t, n, 8*n)
}

// metadataWith returns metadata that announce that many bytes of data.
func metadataWith(t *testing.T, n, bytes uint64) ffs.Values {
	t.Helper()
	b, err := stepFormat.format.Encode(ffs.Values{
		"BitFieldCount": uint64(1), "BitField": []uint64{1}, "DataBlockSize": bytes,
		"BPG_8_8_numbers": ffs.Values{
			"Dims": uint64(1), "BlockCount": uint64(1), "DBCount": uint64(1), "Shape": []uint64{n}, "Count": []uint64{n},
			"Offset": []uint64{0}, "DataBlockLocation": []uint64{0},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ffs.Values{"BlockSize": uint64(len(b)), "BlockData": b}
}

func formatBlock() ffs.Values {
	return ffs.Values{
		"FormatServerRepLen": uint64(len(stepFormat.rep)), "FormatServerRep": stepFormat.rep,
		"FormatIDRepLen": uint64(12), "FormatIDRep": stepFormat.format.ID[:],
	}
}

func numbers(n, first uint64) (b []byte) {
	for i := range n {
		b = binary.LittleEndian.AppendUint64(b, first+i)
	}
	return b
}

// reading reads a stream in the background.
func reading(t *testing.T, contactFile string, change func(*Options)) *Reader {
	t.Helper()
	opt := Default()
	if change != nil {
		change(&opt)
	}
	r, err := Open(contactFile, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() }) // never fails
	return r
}

func TestUnsupportedStreamsNameSetting(t *testing.T) {
	f := func(name, plane string, change ffs.Values, want ...string) {
		t.Run(name, func(t *testing.T) {
			w := newStandIn(t, 5)
			r := reading(t, w.contact(), nil)
			welcome(plane, change, w)
			_, err := r.Next(t.Context())
			if _, ok := errors.AsType[*bp.UnsupportedError](err); !ok {
				t.Fatalf("got the error %T %v, want an UnsupportedError", err, err)
			}
			for _, part := range append(want, r.Path()) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
			w.left()
		})
	}
	f("RDMA", "rdma", nil, `data plane "rdma"`, "DataTransport=WAN", `"TAU trace data"`, "docs/sst.md")
	f("UCX", "ucx", nil, `data plane "ucx"`, "DataTransport=WAN")
	f("FFS", dataPlane, ffs.Values{"MarshalMethod": uint64(0)}, "MarshalMethod=BP5", `"TAU trace data"`)
	f("BP3", dataPlane, ffs.Values{"MarshalMethod": uint64(1)}, "MarshalMethod=BP5")
	f("peers", dataPlane, ffs.Values{"CPCommPattern": uint64(1)}, "CPCommPattern=Min")
	f("on demand", dataPlane, ffs.Values{"StepDistributionMode": uint64(2)}, "StepDistributionMode=AllToAll")
	f("Fortran", dataPlane, ffs.Values{"IsRowMajor": uint64(0)}, "column-major")
}

func TestSilentProgramIsNamed(t *testing.T) {
	w := newStandIn(t, 0)
	r := reading(t, w.contact(), nil)
	w.accept(1)
	w.expect("DPQuery")
	_ = w.Close() // as one does that does not know the message
	_, err := r.Next(t.Context())
	if err == nil || !strings.Contains(err.Error(), "before 2.9") || !strings.Contains(err.Error(), "TAU_ADIOS2_ENGINE=BP4") {
		t.Errorf("got the error %v, want one that names versions and the way out", err)
	}
}

// TestOtherProgramAtSameAddress: the number of a stream is a
// pointer in the process that wrote the contact file, and another one would
// follow it.
func TestOtherProgramAtSameAddress(t *testing.T) {
	w := newStandIn(t, 5)
	r := reading(t, w.contact(), func(o *Options) { o.ConnectTimeout = 3 * time.Second })
	w.accept(6)
	w.left()
	if _, err := r.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "stale contact file") {
		t.Errorf("got the error %v, want one that identifies the file", err)
	}
}

func TestMissingContactFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.bp.sst")
	r := reading(t, path, func(o *Options) { o.ConnectTimeout = time.Millisecond })
	if _, err := r.Next(t.Context()); err == nil || !strings.Contains(err.Error(), path+": no contact file within 1ms") {
		t.Errorf("got the error %v", err)
	}
}

func TestInvalidContactFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sst")
	if err := os.WriteFile(path, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := reading(t, path, nil).Next(t.Context()); err == nil || !strings.Contains(err.Error(), "not an SST contact file") {
		t.Errorf("got the error %v", err)
	}
}

func TestAllRanksAreRead(t *testing.T) {
	ranks := []*standIn{newStandIn(t, 5), newStandIn(t, 6), newStandIn(t, 7)}
	r := reading(t, ranks[0].contact(), nil)
	welcome(dataPlane, nil, ranks...)
	for _, w := range ranks[1:] {
		w.accept(w.manager)
		if w.hello != ranks[0].hello || w.reader != ranks[0].reader {
			t.Errorf("the reader calls itself %v %v with one rank and %v %v with another", w.hello, w.reader, ranks[0].hello, ranks[0].reader)
		}
	}
	if a := ranks[0].expect("ReaderActivate"); a.uint("WSR_Stream") != 100 {
		t.Errorf("the reader calls the stream %d", a.uint("WSR_Stream"))
	}
	sizes := []uint64{3, 0, 5} // one rank has nothing in this step
	blocks := []ffs.Values{metadataOf(t, 3), {}, metadataOf(t, 5)}
	ranks[0].say(timestep, ffs.Values{
		"timestep": uint64(0), "cohort_size": uint64(3), "formats": formatBlock(), "metadata": blocks, "attribute_data": []ffs.Values{{}, {}, {}},
	})
	for _, i := range []int{2, 0} {
		q := ranks[i].expect("EvpathReadRequest")
		if q.uint("WS_Stream") != uint64(200+i) || q.uint("Length") != 8*sizes[i] || q.uint("Timestep") != 0 || q.uint("Offset") != 0 {
			t.Errorf("rank %d receives a request for stream %d, %d bytes", i, q.uint("WS_Stream"), q.uint("Length"))
		}
		ranks[i].say(readReply, ffs.Values{
			"Timestep": uint64(0), "DataLength": 8 * sizes[i], "Data": numbers(sizes[i], uint64(10*i)), "NotifyCondition": q.uint("NotifyCondition"),
		})
	}
	if rel := ranks[0].expect("ReleaseTimestep"); rel.uint("WSR_Stream") != 100 || rel.uint("Timestep") != 0 {
		t.Errorf("released are step %d of stream %d", rel.uint("Timestep"), rel.uint("WSR_Stream"))
	}
	ranks[0].say(writerClose, ffs.Values{"FinalTimestep": uint64(0)})
	ranks[0].expect("ReaderClose")
	for _, w := range ranks {
		w.left()
	}
	s, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := s.Variable("numbers")
	if v == nil || len(v.Blocks) != 2 {
		t.Fatalf("got %+v, want two blocks", v)
	}
	for i, writer := range []int{0, 2} {
		b := &v.Blocks[i]
		got, err := s.Bytes(v, b, make([]byte, b.Size()), 0)
		if err != nil || b.Writer != writer || !slices.Equal(got, numbers(sizes[writer], uint64(10*writer))) {
			t.Errorf("block %d: writer %d, % x, error %v", i, b.Writer, got, err)
		}
	}
	if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestFormatRequests(t *testing.T) {
	w := newStandIn(t, 5)
	r := reading(t, w.contact(), nil)
	welcome(dataPlane, nil, w)
	w.expect("ReaderActivate")
	// The reader answers a query of the writer.
	if err := w.exchange(exchange{kind: queryFormat, condition: 9, first: releaseTimestep.format.ID[:]}); err != nil {
		t.Fatal(err)
	}
	fr, err := w.frames.next()
	if err != nil || fr.exchange == nil || fr.exchange.kind != answerFormat || fr.exchange.condition != 9 ||
		!slices.Equal(fr.exchange.first, releaseTimestep.rep) {
		t.Fatalf("got %+v and the error %v, want the format of ReleaseTimestep", fr.exchange, err)
	}
	// The reader requests the format of a message that was not announced.
	w.announced[writerClose] = true
	w.say(writerClose, ffs.Values{})
	fr, err = w.frames.next()
	if err != nil || fr.exchange == nil || fr.exchange.kind != queryFormat || !slices.Equal(fr.exchange.first, writerClose.format.ID[:]) {
		t.Fatalf("got %+v and the error %v, want a query for WriterClose", fr.exchange, err)
	}
	if err := w.exchange(exchange{kind: answerFormat, condition: fr.exchange.condition, first: writerClose.rep}); err != nil {
		t.Fatal(err)
	}
	w.expect("ReaderClose")
	w.left()
	if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestErrorsCloseConnection: the writer continues then.
func TestErrorsCloseConnection(t *testing.T) {
	step := func(t *testing.T, change ffs.Values) ffs.Values {
		v := ffs.Values{
			"cohort_size": uint64(1), "formats": formatBlock(), "metadata": []ffs.Values{metadataOf(t, 2)}, "attribute_data": []ffs.Values{{}},
		}
		maps.Copy(v, change)
		return v
	}
	f := func(name, want string, do func(t *testing.T, w *standIn)) {
		t.Run(name, func(t *testing.T) {
			w := newStandIn(t, 5)
			r := reading(t, w.contact(), nil)
			welcome(dataPlane, nil, w)
			w.expect("ReaderActivate")
			do(t, w)
			var err error
			for err == nil { // read the valid steps before
				_, err = r.Next(t.Context())
			}
			if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), r.Path()) {
				t.Errorf("got the error %v, want one with %q and the path", err, want)
			}
			for { // a request may be on the way
				if _, _, err := w.receive(); err != nil {
					if !isCut(err) {
						t.Errorf("the reader did not leave: %v", err)
					}
					break
				}
			}
		})
	}
	bytes := func(b ...byte) func(*testing.T, *standIn) {
		return func(t *testing.T, w *standIn) {
			t.Helper()
			if _, err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	f("noise", "not a message", bytes(1, 2, 3, 4, 5, 6, 7, 8))
	f("long record", "2 GiB", bytes(0, 0x42, 0x4d, 0x43, 0, 0, 0, 0))
	f("short record", "a record of 3 bytes", bytes(0, 0x44, 0x4d, 0x43, 3, 0, 0, 0))
	f("checksum", "checksum", func(t *testing.T, w *standIn) {
		t.Helper()
		b := appendRecord(nil, make([]byte, 40))
		b[0]++
		bytes(b...)(t, w)
	})
	f("broken off", "killed or has crashed", func(_ *testing.T, w *standIn) { _ = w.Close() })
	f("broken off in a record", "killed or has crashed", func(t *testing.T, w *standIn) {
		t.Helper()
		bytes(appendRecord(nil, make([]byte, 40))[:20]...)(t, w)
		_ = w.Close()
	})
	f("unknown format", "was never sent", func(t *testing.T, w *standIn) {
		t.Helper()
		v := step(t, nil)
		delete(v, "formats")
		w.say(timestep, v)
	})
	f("steps backwards", "step 0 after step 4", func(t *testing.T, w *standIn) {
		t.Helper()
		w.say(timestep, step(t, ffs.Values{"timestep": uint64(4)}))
		w.say(timestep, step(t, nil))
	})
	f("data that was not requested", "for step 1, which were not requested", func(t *testing.T, w *standIn) {
		t.Helper()
		w.say(timestep, step(t, ffs.Values{"timestep": uint64(1)}))
		w.expect("EvpathReadRequest")
		w.say(readReply, ffs.Values{"Timestep": uint64(1), "DataLength": uint64(16), "Data": numbers(2, 0)})
		w.expect("ReleaseTimestep")
		w.say(readReply, ffs.Values{"Timestep": uint64(1), "DataLength": uint64(16), "Data": numbers(2, 0)})
	})
	f("too few data", "8 bytes of data", func(t *testing.T, w *standIn) {
		t.Helper()
		w.say(timestep, step(t, nil))
		w.expect("EvpathReadRequest")
		w.say(readReply, ffs.Values{"DataLength": uint64(8), "Data": numbers(1, 0)})
	})
	f("arrays beyond the data", "the data of writer 0 end after 8", func(t *testing.T, w *standIn) {
		t.Helper()
		w.say(timestep, step(t, ffs.Values{"metadata": []ffs.Values{metadataWith(t, 2, 8)}}))
		w.expect("EvpathReadRequest")
		w.say(readReply, ffs.Values{"DataLength": uint64(8), "Data": numbers(1, 0)})
	})
	f("arrays without data", "the data of writer 0 end after 0", func(t *testing.T, w *standIn) {
		t.Helper()
		w.say(timestep, step(t, ffs.Values{"metadata": []ffs.Values{metadataWith(t, 2, 0)}}))
	})
	f("a step that cannot be", "a step of 1099511627776 bytes", func(t *testing.T, w *standIn) {
		t.Helper()
		w.say(timestep, step(t, ffs.Values{"metadata": []ffs.Values{metadataWith(t, 2, 1<<40)}}))
	})
	f("metadata of strangers", "metadata of 2 writers", func(t *testing.T, w *standIn) {
		t.Helper()
		w.say(timestep, step(t, ffs.Values{
			"cohort_size": uint64(2), "metadata": []ffs.Values{metadataOf(t, 2), metadataOf(t, 2)},
			"attribute_data": []ffs.Values{{}, {}},
		}))
	})
}

func TestQueueIsBounded(t *testing.T) {
	w := newStandIn(t, 5)
	const n = 1000 // numbers in a step
	r := reading(t, w.contact(), func(o *Options) { o.Queue = 3 * 8 * n })
	welcome(dataPlane, nil, w)
	w.expect("ReaderActivate")
	for i := range uint64(10) {
		v := ffs.Values{"timestep": i, "cohort_size": uint64(1), "metadata": []ffs.Values{metadataOf(t, n)}, "attribute_data": []ffs.Values{{}}}
		if i == 0 {
			v["formats"] = formatBlock()
		}
		w.say(timestep, v)
	}
	w.say(writerClose, ffs.Values{"FinalTimestep": uint64(9)})
	serve := func() { // one request
		t.Helper()
		q := w.expect("EvpathReadRequest")
		w.say(readReply, ffs.Values{"Timestep": q.uint("Timestep"), "DataLength": uint64(8 * n), "Data": numbers(n, q.uint("Timestep"))})
	}
	// Two steps with their metadata find room; the third has to wait.
	var requested []uint64
	for range 2 {
		q := w.expect("EvpathReadRequest")
		requested = append(requested, q.uint("Timestep"))
	}
	for _, ts := range requested {
		w.say(readReply, ffs.Values{"Timestep": ts, "DataLength": uint64(8 * n), "Data": numbers(n, ts)})
		if rel := w.expect("ReleaseTimestep"); rel.uint("Timestep") != ts {
			t.Errorf("released is step %d, want %d", rel.uint("Timestep"), ts)
		}
	}
	for i := range uint64(10) {
		s, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := s.Variable("numbers")
		place := make([]byte, 8*n)
		got, err := s.Bytes(v, &v.Blocks[0], place, 0)
		if err != nil || !slices.Equal(got, numbers(n, i)) || s.Index != int(i) {
			t.Errorf("step %d has other numbers, or the error %v", i, err)
		}
		if &got[0] == &place[0] {
			t.Errorf("step %d was copied", i)
		}
		if i < 8 {
			serve()
			w.expect("ReleaseTimestep")
		}
	}
	if _, err := r.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	if got := r.Received(); got != 10*8*n {
		t.Errorf("%d bytes came, want %d", got, 10*8*n)
	}
}

func TestAddressRoundTrip(t *testing.T) {
	f := func(text string, want address, wantErr string) {
		t.Helper()
		got, err := parseAddress(text)
		if wantErr == "" && (err != nil || got != want) || wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("%s: got %+v and the error %v, want %+v and %q", text, got, err, want, wantErr)
		}
	}
	const recorded = "AAMAAJTJ8o17vQAAATkCmAICAMDe55DE8jFiIQ=="
	a, err := parseAddress(recorded)
	if err != nil || a.String() != "192.0.2.2:48507" || a.manager != 560083442 {
		t.Errorf("got %v of manager %d and the error %v", a, a.manager, err)
	}
	if a.encode() != recorded {
		t.Errorf("encoding it again gives %s", a.encode())
	}
	f("???", address{}, "base64")
	f("AAA=", address{}, "2 bytes")
	f("AQMAAA==", address{}, "big-endian")
	f("AAMAAA==", address{}, "truncated")
	f("AAAAAA==", address{}, "no port")
	f("AAEBAJTJ8o17vQAA1YjfjgMAAAAFAGVuZXQAAA==", address{}, "ControlTransport=sockets")
	f("AAEBAJTJ8o17vQAApFv7ZwMAAAAFAGhvc3QAAA==", address{host: "host", port: 48507}, "")
	f("AAEBAJTJ8o17vQAApFv7ZwkAAAAFAGhvc3QAAA==", address{}, "unknown type 9")
}

func FuzzContact(f *testing.F) {
	f.Add([]byte(signature + "0x55deb911be40:AAMAAJTJ8o3NywAAATkCmAICAMDe55DEtnbVXg=="))
	f.Add([]byte(signature + "1:AAEBAJTJ8o17vQAApFv7ZwMAAAAFAGhvc3QAAA=="))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseContact("x.sst", text)
		if err != nil {
			return
		}
		if c.host == "" {
			again, err := parseAddress(c.encode())
			if err != nil || again != c.address {
				t.Errorf("%+v becomes %+v, error %v", c, again, err)
			}
		}
		if fmt.Sprint(c.address) == "" {
			t.Error("an address without a text")
		}
	})
}
