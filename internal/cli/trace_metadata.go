package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/source/bp"
	"github.com/chimbuko/chimbuko/internal/source/tau"
)

func newTraceMetadataCmd(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "metadata PATH...",
		Short: "print the attributes of traces: hosts, settings, names of functions and counters",
		Long: `Print the attributes of traces: TAU's metadata for each rank and thread, such as
host, command line and settings, then all other attributes, among them the names
of programs, event types, functions ("timer") and counters. Each is shown once,
with the step in which it appeared.`,
		Example: `  chimbuko trace metadata tau-metrics-app-0.bp
  chimbuko trace metadata --json tau-metrics-app-0.bp | jq '.[0].metadata[] | select(.key=="Hostname")'`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			paths, err := expandPaths(paths)
			if err != nil {
				return err
			}
			return runTraceMetadata(cmd.Context(), env, paths, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON for programs instead of tables for people")
	return cmd
}

// fileMetadata is what the attributes of one dataset say.
type fileMetadata struct {
	Path       string          `json:"path"`
	Metadata   []metadataInfo  `json:"metadata"`
	Attributes []attributeInfo `json:"attributes"`
	Error      string          `json:"error,omitempty"`

	err error
}

type metadataInfo struct {
	Step   int          `json:"step"`
	Rank   trace.Rank   `json:"rank"`
	Thread trace.Thread `json:"thread"`
	Key    string       `json:"key"`
	Value  string       `json:"value"`
}

type attributeInfo struct {
	Step   int      `json:"step"`
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Values []string `json:"values"`
}

func runTraceMetadata(ctx context.Context, env *Env, paths []string, asJSON bool) error {
	files := make([]*fileMetadata, 0, len(paths))
	for _, p := range paths {
		f := &fileMetadata{Path: p, Metadata: []metadataInfo{}, Attributes: []attributeInfo{}}
		if f.err = f.read(ctx); f.err != nil {
			f.Error = f.err.Error()
		}
		files = append(files, f)
	}
	if err := env.show(asJSON, files, func(w io.Writer) {
		for _, f := range files {
			f.print(w)
		}
	}); err != nil {
		return err
	}
	var err error
	for _, f := range files {
		if f.err != nil {
			fmt.Fprintf(env.Stderr, "chimbuko: %v\n", advise(f.err))
			err = errReported
		}
	}
	return err
}

func (f *fileMetadata) read(ctx context.Context) error {
	r, err := bp.Open(f.Path, bp.Default())
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
			f.add(s.Index, &s.Attributes[i])
		}
	}
}

func (f *fileMetadata) add(step int, a *bp.Attribute) {
	if m, ok := tau.ParseMetadata(a.Name); ok {
		f.Metadata = append(f.Metadata, metadataInfo{step, m.Rank, m.Thread, m.Key, a.Text()})
		return
	}
	f.Attributes = append(f.Attributes, attributeInfo{step, a.Name, a.Type.String(), append([]string{}, a.Values...)})
}

func (f *fileMetadata) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d metadata, %d other attributes\n\n", f.Path, len(f.Metadata), len(f.Attributes))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(f.Metadata) > 0 {
		fmt.Fprintln(t, "STEP\tRANK\tTHREAD\tKEY\tVALUE")
	}
	for _, m := range f.Metadata {
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\t%s\n", m.Step, m.Rank, m.Thread, oneLine(m.Key), oneLine(m.Value))
	}
	_ = t.Flush() // errors stick to w
	if len(f.Attributes) > 0 {
		fmt.Fprintln(t, "\nSTEP\tATTRIBUTE\tVALUE")
	}
	for _, a := range f.Attributes {
		fmt.Fprintf(t, "%d\t%s\t%s\n", a.Step, oneLine(a.Name), oneLine(strings.Join(a.Values, ", ")))
	}
	_ = t.Flush()
	fmt.Fprintln(w)
}

// oneLine keeps a text from breaking a table.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}
