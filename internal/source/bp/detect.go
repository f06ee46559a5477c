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

	"github.com/chimbuko/chimbuko/internal/base/tally"
)

var (
	hdf5Signature = []byte("\x89HDF\r\n\x1a\n")
	sstSignature  = []byte("#ADIOS2-SST v0")
	bpSignature   = []byte("ADIOS-BP v")
)

// detect determines the format of the dataset and creates the engine that reads it. It
// returns ErrNotReady if it is too early to decide.
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
	if info.IsDir() {
		return r.detectDirectory()
	}
	return r.detectFile(info)
}

// checkCurrent returns ErrNotReady for a followed file that an earlier run wrote.
func (r *Reader) checkCurrent(info fs.FileInfo) error {
	if r.opt.Follow && info.ModTime().Before(r.opt.NotBefore) {
		return fmt.Errorf("%s: %w: it is left from an earlier run", r.path, ErrNotReady)
	}
	return nil
}

func (r *Reader) detectDirectory() error {
	path := filepath.Join(r.path, "md.idx")
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
	if err := r.checkCurrent(info); err != nil {
		return err
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
		r.engine, err = newBP5(r.path, x, r.opt)
		return err
	}
	return &UnsupportedError{
		Path: r.path, What: fmt.Sprintf("BP version %d", x.header[headerVersion]), Advice: "write the trace as BP3, BP4 or BP5",
	}
}

// notStarted handles an index without a header. A reader that does not wait gets a
// dataset without steps. A writer that ends without a step clears the active flag
// although there is no header; that leaves an index of zeros up to the flag and
// ends the dataset.
func (r *Reader) notStarted(head []byte, modified time.Time) error {
	closed := len(head) > headerBP4Active && len(bytes.Trim(head, "\x00")) == 0
	if r.opt.Follow && !closed {
		return fmt.Errorf("%s: %w: no step was finished yet", r.path, ErrNotReady)
	}
	e := emptyEngine{engine: "BP4", active: !closed, modified: modified}
	if _, err := os.Stat(filepath.Join(r.path, "mmd.0")); err == nil {
		e.engine = "BP5"
	}
	if md, err := os.Stat(filepath.Join(r.path, "md.0")); err == nil && closed {
		r.opt.Tally.Add(tally.MetadataUnindexed, md.Size())
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
		return &CorruptError{File: path, Step: -1, Reason: "not an ADIOS2 index: it does not begin with \"ADIOS-BP v\""}
	}
	if h[headerEndian] != 0 {
		return &UnsupportedError{Path: path, What: "a dataset written on a big-endian machine"}
	}
	return nil
}

// version returns the version of ADIOS2 in a header. Each part is one character;
// those after '9' mean 10 and more.
func version(h []byte) string {
	return fmt.Sprintf("%d.%d.%d", int(h[0])-'0', int(h[1])-'0', int(h[2])-'0')
}

// explainDirectory returns an error that identifies a directory without md.idx.
func (r *Reader) explainDirectory() error {
	if _, err := os.Stat(filepath.Join(r.path, "data_oids.txt")); err == nil {
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
		Path: path, What: "an SST contact file, which holds the address of a running program and no data,",
		Advice: "read its live stream with chimbuko ad --engine sst, trace info or trace dump, or write files with " +
			"TAU_ADIOS2_ENGINE=BP4 or BP5",
	}
}

func (r *Reader) detectFile(info fs.FileInfo) error {
	if err := r.checkCurrent(info); err != nil {
		return err
	}
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
			return fmt.Errorf("%s: %w: BP3 files are empty until the program ends", r.path, ErrNotReady)
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
	r.engine, err = newBP3(r.path, f, r.opt)
	return err
}
