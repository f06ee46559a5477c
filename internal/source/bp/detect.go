package bp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var (
	hdf5Signature = []byte("\x89HDF\r\n\x1a\n")
	sstSignature  = []byte("#ADIOS2-SST v0")
	bpSignature   = []byte("ADIOS-BP v")
)

// detect finds out what is at the path and makes the engine that reads it. It
// returns ErrNotReady where that cannot be told yet.
func (r *Reader) detect() error {
	info, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, sst := os.Stat(r.path + ".sst"); sst == nil {
			return refuseSST(r.path + ".sst")
		}
		return fmt.Errorf("%s: %w: %w", r.path, ErrNotReady, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	if r.opt.Follow && info.ModTime().Before(r.opt.NotBefore) && !info.IsDir() {
		return fmt.Errorf("%s: %w: it is left from an earlier run", r.path, ErrNotReady)
	}
	if info.IsDir() {
		return r.detectDirectory()
	}
	return r.detectFile(info)
}

func (r *Reader) detectDirectory() error {
	path := within(r.path, "md.idx")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r.explainDirectory()
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if r.opt.Follow && info.ModTime().Before(r.opt.NotBefore) {
		return fmt.Errorf("%s: %w: it is left from an earlier run", r.path, ErrNotReady)
	}
	x := index{path: path, pos: headerSize, modified: info.ModTime(), active: true}
	n, err := io.ReadFull(f, x.header[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.notStarted(x.header[:n], x.modified)
	}
	if err != nil {
		return err
	}
	if err := checkHeader(&x.header, path); err != nil {
		return err
	}
	switch x.header[headerVersion] {
	case 4:
		r.engine = newBP4(r.path, x, r.opt)
		return nil
	case 5:
		e, err := newBP5(r.path, x, r.opt)
		if err != nil {
			return err
		}
		r.engine = e
		return nil
	}
	return &UnsupportedError{Path: r.path, What: fmt.Sprintf("BP version %d", x.header[headerVersion]), Advice: "BP3, BP4 and BP5 are"}
}

// notStarted deals with an index that has no header yet. For a reader that
// does not wait, having no steps is an answer. A writer that ends without a
// step clears the active flag where there is no header to hold it; that leaves
// an index of nothing but zeros, up to the flag, and is the end.
func (r *Reader) notStarted(head []byte, modified time.Time) error {
	closed := len(head) > headerBP4Active && len(bytes.Trim(head, "\x00")) == 0
	if r.opt.Follow && !closed {
		return fmt.Errorf("%s: %w: no step was finished yet", r.path, ErrNotReady)
	}
	e := emptyEngine{engine: "BP4", active: !closed, modified: modified}
	if _, err := os.Stat(within(r.path, "mmd.0")); err == nil {
		e.engine = "BP5"
	}
	r.engine = e
	return nil
}

// emptyEngine is a dataset without a first step.
type emptyEngine state

func (e emptyEngine) next() (*Step, error) {
	if e.active {
		return nil, errNoStep
	}
	return nil, io.EOF
}
func (e emptyEngine) state() state { return state(e) }
func (e emptyEngine) close()       {}
func (e emptyEngine) forget()      {}

func checkHeader(h *[headerSize]byte, path string) error {
	if !bytes.HasPrefix(h[:], bpSignature) {
		return &CorruptError{File: path, Step: -1, Reason: "this is not an index of ADIOS2: it does not begin with \"ADIOS-BP v\""}
	}
	if h[headerEndian] != 0 {
		return &UnsupportedError{Path: path, What: "a dataset written on a big-endian machine"}
	}
	return nil
}

// version returns the version of ADIOS2 that a header names. Its minor part
// is one character, counted on after '9'.
func version(h []byte) string {
	return fmt.Sprintf("%d.%d.%d", int(h[0])-'0', int(h[1])-'0', int(h[2])-'0')
}

// explainDirectory returns what a directory without md.idx is.
func (r *Reader) explainDirectory() error {
	if _, err := os.Stat(within(r.path, "data_oids.txt")); err == nil {
		return &UnsupportedError{
			Path: r.path, What: "a dataset in DAOS object storage",
			Advice: "write the trace to files with the engine BP4 or BP5",
		}
	}
	if base, ok := strings.CutSuffix(r.path, ".dir"); ok {
		if _, err := os.Stat(base); err == nil {
			return &UnsupportedError{Path: r.path, What: "the data directory of a BP3 dataset by itself", Advice: "open " + base}
		}
	}
	if filepath.Ext(r.path) == ".bp" {
		return fmt.Errorf("%s: %w: the directory has no md.idx", r.path, ErrNotReady)
	}
	return &UnsupportedError{Path: r.path, What: "a directory that is not an ADIOS2 dataset (no md.idx)"}
}

func refuseSST(path string) error {
	return &UnsupportedError{
		Path: path, What: "an SST contact file: it holds no data but the address of a running program, and to read it as a file",
		Advice: "its live stream is read by chimbuko ad --engine sst, trace info and trace dump; or write files with TAU_ADIOS2_ENGINE=BP4 " +
			"or BP5",
	}
}

func (r *Reader) detectFile(info fs.FileInfo) error {
	f, err := os.Open(r.path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read from: nothing can be lost
	head := make([]byte, 16)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	head = head[:n]
	switch {
	case n == 0:
		if r.opt.Follow {
			return fmt.Errorf("%s: %w: BP3 shows nothing before the program ends", r.path, ErrNotReady)
		}
		r.engine = emptyEngine{engine: "BP3", active: true, modified: info.ModTime()}
		return nil
	case bytes.HasPrefix(head, sstSignature):
		return refuseSST(r.path)
	case bytes.HasPrefix(head, hdf5Signature):
		return &UnsupportedError{Path: r.path, What: "HDF5", Advice: "write the trace with the engine BP4 or BP5"}
	case bytes.HasPrefix(head, bpSignature):
		return &UnsupportedError{Path: r.path, What: "one file of an ADIOS2 dataset by itself", Advice: "open its directory " +
			filepath.Dir(r.path)}
	}
	e, err := newBP3(r.path, f, r.opt)
	if err != nil {
		return err
	}
	r.engine = e
	return nil
}
