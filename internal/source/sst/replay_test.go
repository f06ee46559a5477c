package sst

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/ffs"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

var update = flag.Bool("update", false, "rewrite the golden files; check the difference before you commit it")

var captures = []string{"writer1-reader1", "tau-1rank", "reorganize-1writer"}

// recording has the bytes of both sides of a stream.
type recording struct{ reader, writer []byte }

// recorded finds the stream in a packet capture: the connection whose first
// side sends a hello and a handshake.
func recorded(tb testing.TB, name string) recording {
	tb.Helper()
	sides := assemble(tb, tracetest.Capture(tb, name))
	for from, b := range sides {
		if len(b) > 8 && binary.LittleEndian.Uint32(b[4:]) == magicHandshake {
			return recording{reader: b[4:], writer: sides[flow{from.to, from.from}]}
		}
	}
	tb.Fatalf("no stream in the capture %s", name)
	return recording{}
}

// flow is one side of a TCP connection.
type flow struct{ from, to uint16 }

// assemble returns the bytes of each side of each TCP connection in a packet capture of
// Ethernet frames with IPv4.
func assemble(tb testing.TB, pcap []byte) map[flow][]byte {
	tb.Helper()
	const fileHeader, packetHeader, ethernetHeader, ethernet = 24, 16, 14, 1
	if binary.LittleEndian.Uint32(pcap) != 0xa1b2c3d4 || binary.LittleEndian.Uint32(pcap[20:]) != ethernet {
		tb.Fatal("not a capture of Ethernet frames")
	}
	sides := make(map[flow][]byte)
	first := make(map[flow]uint32) // sequence number of the first byte
	for b := pcap[fileHeader:]; len(b) > 0; {
		n := binary.LittleEndian.Uint32(b[8:])
		packet := b[packetHeader : packetHeader+n]
		b = b[packetHeader+n:]
		ip := packet[ethernetHeader:]
		const tcp, syn = 6, 2
		if ip[9] != tcp {
			continue
		}
		segment := ip[int(ip[0]&15)*4 : binary.BigEndian.Uint16(ip[2:])]
		f := flow{binary.BigEndian.Uint16(segment), binary.BigEndian.Uint16(segment[2:])}
		sequence := binary.BigEndian.Uint32(segment[4:])
		if segment[13]&syn != 0 {
			first[f] = sequence + 1
			continue
		}
		data := segment[int(segment[12]>>4)*4:]
		at := int(sequence - first[f])
		if len(data) == 0 || at < 0 || at > len(sides[f]) {
			continue
		}
		sides[f] = append(sides[f][:at], data...)
	}
	return sides
}

// TestRecordedStreams replays the messages of real writers.
func TestRecordedStreams(t *testing.T) {
	for _, name := range captures {
		t.Run(name, func(t *testing.T) {
			rec := recorded(t, name)
			contact, ended := replayed(t, rec.writer)
			got, err := dump(t, contact)
			if !errors.Is(err, io.EOF) {
				t.Errorf("the stream ended with %v, want io.EOF", err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			golden := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("differs from %s:\n%s", golden, got)
			}
		})
	}
}

// replayed serves the recorded bytes of a writer to one reader, and returns the contact
// file of the stream and, at the end, an error.
func replayed(t testing.TB, recorded []byte) (contactFile string, ended <-chan error) {
	t.Helper()
	l := listen(t)
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer c.Close() //nolint:errcheck // it is over
		heard := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, c) // until the reader leaves
			close(heard)
		}()
		_, err = c.Write(recorded)
		<-heard
		done <- err
	}()
	return writeContact(t, contact{writer: 0x1234, address: addressOf(l, 0)}), done
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it is over
	return l
}

func addressOf(l net.Listener, manager uint32) address {
	at := netip.MustParseAddrPort(l.Addr().String())
	return address{ip: at.Addr(), port: at.Port(), manager: manager}
}

func writeContact(t testing.TB, c contact) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stream.sst")
	if err := os.WriteFile(path, fmt.Appendf(nil, "%s%#x:%s", signature, c.writer, c.encode()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// dump reads a stream and returns its content as text.
func dump(t testing.TB, contactFile string) (text string, err error) {
	t.Helper()
	r, err := Open(contactFile, Default())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // never fails
	var out strings.Builder
	for {
		s, err := r.Next(t.Context())
		if err != nil {
			return out.String(), err
		}
		fmt.Fprintf(&out, "step %d\n", s.Index)
		for i := range s.Variables {
			dumpVariable(t, &out, s, &s.Variables[i])
		}
		for i := range s.Attributes {
			a := &s.Attributes[i]
			text := fmt.Sprintf("%q", a.Values)
			if strings.HasPrefix(a.Name, "MetaData:") || strings.Contains(text, "/") { // of the machine, paths on it
				text = fmt.Sprintf("CRC-32 %08x", crc32.ChecksumIEEE([]byte(text)))
			}
			fmt.Fprintf(&out, "  attribute %s: %v %s\n", a.Name, a.Type, text)
		}
	}
}

func dumpVariable(t testing.TB, out io.Writer, s *bp.Step, v *bp.Variable) {
	t.Helper()
	for j := range v.Blocks {
		b := &v.Blocks[j]
		fmt.Fprintf(out, "  %s: %v %v, writer %d", v.Name, v.Shape, v.Type, b.Writer)
		if text, ok := v.Text(j); ok {
			fmt.Fprintf(out, " = %s\n", text)
			continue
		}
		data, err := s.Bytes(v, b, make([]byte, b.Size()), 0)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(out, " of %v from %v count %v: CRC-32 %08x\n", b.Shape, b.Start, b.Count, crc32.ChecksumIEEE(data))
	}
}

// TestMessagesEqualLibrary compares the messages of ADIOS2's reader with ours.
func TestMessagesEqualLibrary(t *testing.T) {
	seen := make(map[*outgoing]int)
	for _, name := range captures {
		for _, fr := range framesOf(t, recorded(t, name).reader) {
			switch {
			case fr.exchange != nil && fr.exchange.kind == announceFormat:
				for _, m := range outgoingMessages {
					if bytes.Equal(m.rep, fr.exchange.second) && !bytes.Equal(m.format.ID[:], fr.exchange.first) {
						t.Errorf("%s has the id %v, but should have %x", m.format.Name, m.format.ID, fr.exchange.first)
					}
				}
			case fr.record != nil:
				i := slices.IndexFunc(outgoingMessages, func(m *outgoing) bool { return bytes.HasPrefix(fr.record, m.format.ID[:]) })
				if i < 0 {
					continue // one that we never send
				}
				seen[outgoingMessages[i]]++
				sameRecord(t, outgoingMessages[i], fr.record)
			}
		}
	}
	for _, m := range outgoingMessages {
		if seen[m] == 0 && m != readRequest { // these readers had all data sent unasked
			t.Errorf("no reader sent %s", m.format.Name)
		}
	}
}

// TestFormatIDsEqualLibrary compares all format ids with those that ADIOS2 announces.
func TestFormatIDsEqualLibrary(t *testing.T) {
	for m, want := range map[*outgoing]string{
		dpQuery: "02000023086cf383af9fc397", readerRegister: "0200009a40c4fcb4249a0787", readerActivate: "02000019d952f615b60dcc2a",
		releaseTimestep: "020000210ee2118818d8303a", readerClose: "0200001858bdd7b4b95d2179", readRequest: "0200004dad3a9da6db8ed1c2",
	} {
		if got := m.format.ID.String(); got != want {
			t.Errorf("%s: got %s, want %s", m.format.Name, got, want)
		}
	}
}

// sameRecord checks that encoding the values of a recorded message gives the
// same bytes, but for the padding, which the library does not clear.
func sameRecord(t *testing.T, m *outgoing, record []byte) {
	t.Helper()
	rec, err := m.format.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.format.Encode(valuesOf(t, rec))
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(record) {
		t.Errorf("%s: got %d bytes, want %d:\n% x\n% x", m.format.Name, len(again), len(record), again, record)
		return
	}
	if rec, err = m.format.Decode(again); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(valuesOf(t, rec)), fmt.Sprint(valuesOf(t, must(m.format.Decode(record)))); got != want {
		t.Errorf("%s:\n got %s\nwant %s", m.format.Name, got, want)
	}
}

func must(rec ffs.Record, _ error) ffs.Record { return rec }

// valuesOf returns the values in a record of numbers, strings and structures.
func valuesOf(t *testing.T, rec ffs.Record) ffs.Values {
	t.Helper()
	v := make(ffs.Values)
	m := &incoming{Record: rec}
	for i := range rec.Format.Fields {
		fd := &rec.Format.Fields[i]
		switch fd.Kind {
		case ffs.String:
			v[fd.Name] = m.text(fd.Name)
		case ffs.Struct:
			all := []ffs.Values{}
			m.each(fd.Name, func(_ int, s *incoming) { all = append(all, valuesOf(t, s.Record)) })
			v[fd.Name] = all
		default:
			v[fd.Name] = m.uint(fd.Name)
		}
	}
	if m.err != nil {
		t.Fatal(m.err)
	}
	return v
}

// framesOf splits the bytes of one side of a stream.
func framesOf(t testing.TB, b []byte) (all []frame) {
	t.Helper()
	in := &frames{r: bufio.NewReader(bytes.NewReader(b)), pool: &pool{}, expected: func() int64 { return 0 }}
	for {
		fr, err := in.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fr)
	}
}

// TestFrameRoundTrip writes the recorded frames again.
func TestFrameRoundTrip(t *testing.T) {
	for _, name := range captures {
		rec := recorded(t, name)
		for side, want := range map[string][]byte{"reader": rec.reader, "writer": rec.writer} {
			var got []byte
			for _, fr := range framesOf(t, want) {
				switch {
				case fr.handshake != nil:
					got = fr.handshake.append(got)
				case fr.exchange != nil:
					got = fr.exchange.append(got)
				default:
					got = appendRecord(got, fr.record)
				}
			}
			if !bytes.Equal(got, want) {
				i := 0
				for i < min(len(got), len(want)) && got[i] == want[i] {
					i++
				}
				t.Errorf("%s, %s: %d bytes for %d, the first that differs is %d", name, side, len(got), len(want), i)
			}
		}
	}
}
