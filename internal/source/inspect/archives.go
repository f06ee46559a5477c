package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/otf2"
)

// SplitArchives separates paths of OTF2 archives from others.
func SplitArchives(paths []string) (archives, others []string) {
	for _, p := range paths {
		if anchor, ok := otf2.AnchorOf(p); ok {
			archives = append(archives, anchor)
		} else {
			others = append(others, p)
		}
	}
	return archives, others
}

// OpenArchives opens OTF2 archives. Their clocks must have the same unit.
func OpenArchives(paths []string) ([]*otf2.Archive, error) {
	all := make([]*otf2.Archive, 0, len(paths))
	for _, path := range paths {
		a, err := otf2.Open(path)
		if err != nil {
			return nil, err
		}
		if all = append(all, a); a.Unit != all[0].Unit {
			return nil, fmt.Errorf("%s and %s have clocks of different resolution (analyze them separately)", all[0].Path, path)
		}
	}
	return all, nil
}

// archiveReader reads an OTF2 archive.
type archiveReader struct {
	sequence
	archive *otf2.Archive
	names   trace.Names
}

func openArchive(anchor string, t *tally.Tally) (*archiveReader, error) {
	a, err := otf2.Open(anchor)
	if err != nil {
		return nil, err
	}
	r := &archiveReader{archive: a, names: a.Names()}
	for _, rank := range a.Ranks {
		r.open = append(r.open, func() (trace.Steps, error) { return a.Steps(rank, t) })
	}
	return r, nil
}

func (r *archiveReader) Names() *trace.Names { return &r.names }
func (r *archiveReader) Unit() trace.Unit    { return r.archive.Unit }
func (r *archiveReader) Format() string      { return "OTF2" }
func (r *archiveReader) Version() string     { return r.archive.Version }
func (r *archiveReader) Active() bool        { return false }
func (r *archiveReader) OneFile() bool       { return len(r.archive.Ranks) > 1 }

func (r *archiveReader) Modified() time.Time {
	if info, err := os.Stat(r.archive.Path); err == nil {
		return info.ModTime()
	}
	return time.Time{}
}

func (r *archiveReader) Size() (n int64) {
	for _, rank := range r.archive.Ranks {
		n += r.archive.Size(rank)
	}
	return n
}

func (r *archiveReader) Close() error {
	r.release()
	return nil
}

// isArchive reports whether a path is the anchor file of an OTF2 archive.
func isArchive(path string) bool {
	if filepath.Ext(path) != ".otf2" {
		return false
	}
	_, ok := otf2.AnchorOf(path)
	return ok
}
