package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/nccl"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

// Attributes are all attributes of a dataset.
type Attributes struct {
	Path     string      `json:"path"`
	Metadata []metadata  `json:"metadata"`   // TAU's, of ranks and threads
	Others   []attribute `json:"attributes"` // among them the names of functions and counters
	Error    string      `json:"error,omitempty"`
}

type metadata struct {
	Step   int          `json:"step"`
	Rank   trace.Rank   `json:"rank"`
	Thread trace.Thread `json:"thread"`
	Key    string       `json:"key"`
	Value  string       `json:"value"`
}

type attribute struct {
	Step   int      `json:"step"`
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Values []string `json:"values"`
}

// ReadAttributes returns the attributes of a dataset up to its end or first error, which
// it puts into the result.
func ReadAttributes(ctx context.Context, path string) *Attributes {
	f := &Attributes{Path: path, Metadata: []metadata{}, Others: []attribute{}}
	if err := f.read(ctx); err != nil {
		f.Error = err.Error()
	}
	return f
}

func (f *Attributes) read(ctx context.Context) error {
	if isArchive(f.Path) || isProfile(f.Path) || nccl.IsLog(f.Path) {
		return f.readProfile(ctx)
	}
	r, err := openDataset(f.Path, bp.Default())
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		s, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range s.Attributes {
			a := &s.Attributes[i]
			if m, ok := tau.ParseMetadata(a.Name); ok {
				f.Metadata = append(f.Metadata, metadata{s.Index, m.Rank, m.Thread, m.Key, a.Text()})
			} else {
				f.Others = append(f.Others, attribute{s.Index, a.Name, a.Type.String(), append([]string{}, a.Values...)})
			}
		}
	}
}

// readProfile reads the metadata of a profile or an archive, and the names.
func (f *Attributes) readProfile(ctx context.Context) error {
	r, err := open(f.Path, bp.Default(), 0) //nolint:contextcheck // files need none
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read from
	for {
		s, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, m := range s.Metadata {
			f.Metadata = append(f.Metadata, metadata{s.Index, m.Rank, m.Thread, m.Key, m.Value})
		}
	}
	for id, name := range r.Names().Funcs() {
		f.Others = append(f.Others, attribute{0, fmt.Sprint("function ", id), "string", []string{name}})
	}
	for id, name := range r.Names().Counters() {
		f.Others = append(f.Others, attribute{0, fmt.Sprint("counter ", id), "string", []string{name}})
	}
	return nil
}

// Print writes tables of the attributes. Errors stick to w.
func (f *Attributes) Print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d metadata, %d other attributes\n\n", f.Path, len(f.Metadata), len(f.Others))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(f.Metadata) > 0 {
		fmt.Fprintln(t, "STEP\tRANK\tTHREAD\tKEY\tVALUE")
	}
	for _, m := range f.Metadata {
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\t%s\n", m.Step, m.Rank, m.Thread, text.SingleSpaced(m.Key), text.SingleSpaced(m.Value))
	}
	_ = t.Flush() // errors stick to w
	if len(f.Others) > 0 {
		fmt.Fprintln(t, "\nSTEP\tATTRIBUTE\tVALUE")
	}
	for _, a := range f.Others {
		fmt.Fprintf(t, "%d\t%s\t%s\n", a.Step, text.SingleSpaced(a.Name), text.SingleSpaced(strings.Join(a.Values, ", ")))
	}
	_ = t.Flush()
	fmt.Fprintln(w)
}
