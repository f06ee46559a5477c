package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/chimbuko/chimbuko/internal/lab/simulate"
)

// demoDir is the directory of a demo.
type demoDir struct {
	path string
	kept bool     // when the demo has ended
	mark *os.File // is locked as long as the demo goes on
}

// demoMark is the file that tells the directory of a demo from others.
const demoMark = "demo.json"

func (d *demoDir) run() string              { return filepath.Join(d.path, "run") }
func (d *demoDir) traces() string           { return filepath.Join(d.path, "traces") }
func (d *demoDir) truth() string            { return filepath.Join(d.traces(), simulate.TruthFile) }
func (d *demoDir) logs() string             { return filepath.Join(d.path, "logs") }
func (d *demoDir) temporary() string        { return filepath.Join(d.path, "temporary") }
func (d *demoDir) spool(host string) string { return filepath.Join(d.temporary(), "spool-"+host) }

// tracesOf is a pattern of the traces of a host.
func (d *demoDir) tracesOf(host string) string {
	return filepath.Join(escapeGlob(filepath.Join(d.traces(), host)), "*.bp")
}

// demoInfo is what the mark says.
type demoInfo struct {
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Scenario string    `json:"scenario"`
	Duration string    `json:"duration"`
}

// newDemoDir makes the directory of a demo: the one that is given, in place of an
// earlier demo, or else a temporary one. close must be called in the end.
func newDemoDir(given string, info demoInfo) (d *demoDir, err error) {
	d = new(demoDir)
	if given == "" {
		d.path, err = os.MkdirTemp("", "chimbuko-demo-")
	} else {
		d.path, d.kept = given, true
		err = d.claim()
	}
	if err != nil {
		return d, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.mark == nil {
		if d.mark, err = os.Create(filepath.Join(d.path, demoMark)); err != nil {
			return d, err
		}
	}
	text, err := json.Marshal(info)
	if err != nil {
		return d, err
	}
	if _, err := d.mark.Write(append(text, '\n')); err != nil {
		return d, err
	}
	for _, path := range []string{d.run(), d.traces(), d.logs(), d.temporary()} {
		if err := os.RemoveAll(path); err != nil {
			return d, err
		}
	}
	for _, path := range []string{d.traces(), d.logs(), d.temporary()} {
		if err := os.Mkdir(path, 0o755); err != nil {
			return d, err
		}
	}
	return d, nil
}

// claim takes a directory that is to be kept, if it is empty or of a demo that has
// ended.
func (d *demoDir) claim() error {
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	mark := filepath.Join(d.path, demoMark)
	if _, err := os.Stat(mark); err != nil && len(entries) > 0 {
		return fmt.Errorf("%s: the directory is not empty and not that of a demo; choose another with --out, or remove it", d.path)
	}
	if d.mark, err = os.OpenFile(mark, os.O_CREATE|os.O_RDWR, 0o644); err != nil { //nolint:gosec // meant to be read by all
		return err
	}
	if err := lockFile(d.mark); err != nil {
		return errors.Join(fmt.Errorf("%s: a demo goes on there (%w); wait for it to end, or choose another directory with --out", d.path, err), d.mark.Close())
	}
	return d.mark.Truncate(0)
}

// close removes what is not to be kept. It may be called twice.
func (d *demoDir) close() error {
	var err error
	if d.mark != nil {
		err = d.mark.Close()
		d.mark = nil
	}
	remove := d.path
	if d.kept {
		remove = d.temporary()
	}
	return errors.Join(err, os.RemoveAll(remove))
}
