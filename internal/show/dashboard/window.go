package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/tracefile"
	"github.com/chimbuko/chimbuko/internal/show/insight"
)

// windowFormats are the trace formats of a window.
var windowFormats = map[string]struct {
	suffix, kind string
	write        func(w io.Writer, r *provenance.Record) error
}{
	"perfetto": {".perfetto-trace", "application/octet-stream", tracefile.WritePerfetto},
	"chrome":   {".trace.json", "application/json", tracefile.WriteChrome},
	"json":     {".json", "application/json", nil}, // the stored document
}

type windowParams struct {
	insight.EventParams
	format string
}

func (p *params) window() windowParams {
	of := windowParams{p.event(), p.word("format", "perfetto")}
	if _, ok := windowFormats[of.format]; !ok {
		p.fail("format", "unknown format %.40q (want chrome, json or perfetto)", of.format)
	}
	return of
}

// window returns the calls around an execution as a file.
func (s *server) window(ctx context.Context, run string, of windowParams) (*file, error) {
	e, err := s.insight.Event(ctx, run, of.EventParams)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	format := windowFormats[of.format]
	if format.write == nil {
		err = json.Indent(&b, e.Document, "", "  ")
	} else {
		err = format.write(&b, e.Record)
	}
	if err != nil {
		return nil, problem(http.StatusUnprocessableEntity, err.Error(), "format=json returns the record unchanged")
	}
	return &file{format.kind, downloadName(e.Record) + format.suffix, b.Bytes()}, nil
}

// downloadName returns a file name for an execution with safe characters only.
func downloadName(r *provenance.Record) string {
	id := strings.Map(func(c rune) rune {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_':
			return c
		}
		return '-'
	}, r.EventID)
	return fmt.Sprintf("chimbuko-%d-%s", r.PID, id[:min(len(id), 80)])
}
