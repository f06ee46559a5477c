package recordfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Writer writes the JSON record files of a run. It is an analyzer.RecordSink.
type Writer struct {
	dir string

	mu   sync.Mutex
	made map[string]bool
	size int64

	buffers sync.Pool // of *bytes.Buffer, for a record
	writers sync.Pool // of *bufio.Writer, for a file
}

// NewWriter returns a writer of files below dir.
func NewWriter(dir string) *Writer {
	w := &Writer{dir: dir, made: make(map[string]bool)}
	w.buffers.New = func() any { return new(bytes.Buffer) }
	w.writers.New = func() any { return bufio.NewWriterSize(nil, 1<<16) }
	return w
}

// Size returns the bytes of records written.
func (w *Writer) Size() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

// Metadata writes the metadata of a step.
func (w *Writer) Metadata(_ context.Context, key trace.StepKey, facts []provenance.Metadata) error {
	return w.writeFile(key, "metadata", func(to io.Writer) error {
		enc := json.NewEncoder(to)
		enc.SetEscapeHTML(false)
		return enc.Encode(facts)
	})
}

// Records writes the anomalies and typical executions of a step.
func (w *Writer) Records(_ context.Context, key trace.StepKey, anomalies, typical []*provenance.Record) error {
	return errors.Join(w.writeRecords(key, "anomalies", anomalies), w.writeRecords(key, "normalexecs", typical))
}

// writeRecords writes the records of a step as an array.
func (w *Writer) writeRecords(key trace.StepKey, collection string, records []*provenance.Record) error {
	if len(records) == 0 {
		return nil
	}
	return w.writeFile(key, collection, func(to io.Writer) error {
		b := w.buffers.Get().(*bytes.Buffer)
		defer w.buffers.Put(b)
		for i, r := range records {
			b.Reset()
			b.WriteByte("[,"[min(i, 1)])
			if err := r.WriteJSON(b); err != nil {
				return fmt.Errorf("record %s: %w", r.EventID, err)
			}
			if _, err := to.Write(b.Bytes()); err != nil {
				return err
			}
		}
		_, err := io.WriteString(to, "]\n")
		return err
	})
}

// writeFile writes one collection of a step.
func (w *Writer) writeFile(key trace.StepKey, collection string, content func(io.Writer) error) error {
	dir := filepath.Join(w.dir, "records", strconv.Itoa(int(key.Program)), strconv.Itoa(int(key.Rank)))
	if err := w.mkdir(dir); err != nil {
		return err
	}
	// A second file of the same step is an error.
	path := filepath.Join(dir, strconv.Itoa(key.Step)+"."+collection+".json")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // meant to be read by all
	if err != nil {
		return err
	}
	to := w.writers.Get().(*bufio.Writer)
	defer w.writers.Put(to)
	to.Reset(f)
	err = errors.Join(content(to), to.Flush())
	if info, statErr := f.Stat(); statErr == nil {
		w.mu.Lock()
		w.size += info.Size()
		w.mu.Unlock()
	}
	return errors.Join(err, f.Close())
}

func (w *Writer) mkdir(dir string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made[dir] {
		return nil
	}
	w.made[dir] = true
	return os.MkdirAll(dir, 0o755)
}

// WriteGlobal writes the collections over all ranks.
func (w *Writer) WriteGlobal(c *provenance.Collections) error {
	all := map[string]any{
		"func_stats": c.FuncStats, "counter_stats": c.CounterStats, "ad_model": c.ADModels, "path_stats": c.PathStats,
		"findings": c.Findings, "links": c.Links,
	}
	if c.Peers != nil {
		all["rank_loads"], all["efficiency"], all["slow_peers"] = c.Peers.Loads, c.Peers.Efficiency, c.Peers.Slow
		if len(c.Peers.Activity) > 0 {
			all["activity"] = []activityDocument{{base64.StdEncoding.EncodeToString(c.Peers.Activity)}}
		}
	}
	if c.Breakdown != nil {
		all["gpu_times"], all["collectives"], all["clocks"] = c.Breakdown.Times, c.Breakdown.Collectives, c.Breakdown.Clocks
	}
	dir := filepath.Join(w.dir, "global")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, v := range all {
		content, err := json.Marshal(v)
		if string(content) == "null" {
			content = []byte("[]")
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".json"), append(content, '\n'), 0o644) //nolint:gosec // meant to be read by all
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
