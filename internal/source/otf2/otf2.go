// Package otf2 reads archives of the Open Trace Format 2, as Score-P, TAU and APEX write them. An
// archive is an anchor file (traces.otf2), global definitions (traces.def), and for each
// location, which is a thread or a GPU stream, a file of events and one of local definitions.
//
// Open reads the definitions of an archive. Steps reads the events of one rank, with the local
// numbers and clocks of its locations translated to global ones. docs/formats/otf2.md has the format.
package otf2

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Limits of the numbers in a file.
const (
	// largestChunk is the largest size of a chunk that the reference library writes.
	largestChunk = 16 << 20
	maxLocations = 1 << 20
)

// substrates are the ways in which an archive may be stored.
const (
	posix = 1
	sion  = 2
)

// anchor is the content of the anchor file.
type anchor struct {
	version     [3]byte
	eventChunk  uint64
	defChunk    uint64
	locations   uint64
	definitions uint64
	creator     string
}

// Version returns the version of the library that wrote the archive.
func (a *anchor) Version() string {
	return fmt.Sprintf("%d.%d.%d", a.version[0], a.version[1], a.version[2])
}

// AnchorOf returns the anchor file of an archive, given that file or a directory that has one, or false.
func AnchorOf(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		all, err := filepath.Glob(filepath.Join(escape(path), "*.otf2"))
		if err != nil || len(all) != 1 {
			return "", false
		}
		path = all[0]
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close() //nolint:errcheck // only read from
	var head [6]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || string(head[2:]) != "OTF2" || head[0] != chunkHeader {
		return "", false
	}
	return path, true
}

// escape returns a pattern of filepath.Glob that matches only path.
func escape(path string) string {
	var b []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			b = append(b, '\\')
		}
		b = append(b, path[i])
	}
	return string(b)
}

// readAnchor reads the anchor file.
func readAnchor(path string) (*anchor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(f, largestChunk))
	if err != nil {
		return nil, err
	}
	c := cursor{path: path, data: data, end: len(data)}
	if len(data) < 2 || data[0] != chunkHeader || !c.setOrder(data[1]) {
		return nil, fmt.Errorf("%s: no anchor file of an OTF2 archive", path)
	}
	c.pos = 2
	if magic := c.text(); magic != "OTF2" {
		return nil, fmt.Errorf("%s: no anchor file of an OTF2 archive", path)
	}
	var a anchor
	c.skip(2) // versions of the format of files and of the anchor
	for i := range a.version {
		a.version[i] = c.byte()
	}
	a.eventChunk, a.defChunk = c.u64(), c.u64()
	substrate, compression := c.byte(), c.byte()
	a.locations, a.definitions = c.u64(), c.u64()
	c.text() // machine
	a.creator = c.text()
	switch {
	case c.err != nil:
		return nil, c.err
	case substrate == sion:
		return nil, fmt.Errorf("%s: the archive is in a SION container, which cannot be read (record with SCOREP_TRACING_USE_SION=false)", path)
	case substrate != posix:
		return nil, fmt.Errorf("%s: the archive is stored in an unknown way (file substrate %d)", path, substrate)
	case compression > 1:
		return nil, fmt.Errorf("%s: the archive is compressed, which cannot be read", path)
	case a.eventChunk > largestChunk || a.defChunk > largestChunk || a.eventChunk < headerSize || a.defChunk < headerSize:
		return nil, fmt.Errorf("%s: impossible sizes of chunks, %d and %d bytes", path, a.eventChunk, a.defChunk)
	case a.locations > maxLocations:
		return nil, fmt.Errorf("%s: %d locations are more than can be read (%d)", path, a.locations, maxLocations)
	}
	return &a, nil
}

// errCut is the error of data that end within a record.
var errCut = errors.New("the file ends within a record")
