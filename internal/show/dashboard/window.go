package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/record/tracefile"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// windowForms are the forms in which a window can be had.
var windowForms = map[string]struct {
	suffix, kind string
	write        func(b *bytes.Buffer, e *query.Event) error
}{
	"perfetto": {".perfetto-trace", "application/octet-stream", func(b *bytes.Buffer,
		e *query.Event,
	) error {
		return tracefile.WritePerfetto(b, e.Record)
	}},
	"chrome": {".trace.json", "application/json", func(b *bytes.Buffer, e *query.Event) error { return tracefile.WriteChrome(b, e.Record) }},
	"json": {".json", "application/json", func(b *bytes.Buffer, e *query.Event) error {
		return json.Indent(b, e.Document, "", "  ")
	}},
}

// window is what happened around an execution, as a file.
func (s *server) window(r *http.Request, p *params) (any, error) {
	of, format := p.event(r), p.word("format", "perfetto")
	form, ok := windowForms[format]
	if !ok {
		p.fail("format", "unknown format %.40q (want chrome, json or perfetto)", format)
	}
	e, err := call(r, p, s.insight.Event, of)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := form.write(&b, e); err != nil {
		return nil, &problem{http.StatusUnprocessableEntity, err.Error(), "the record is odd; format=json gives it as it is"}
	}
	return &file{form.kind, fileName(e.Record) + form.suffix, b.Bytes()}, nil
}

// fileName names files after an execution, whatever its id is made of.
func fileName(r *provenance.Record) string {
	id := strings.Map(func(c rune) rune {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_':
			return c
		}
		return '-'
	}, r.EventID)
	return fmt.Sprintf("chimbuko-%d-%s", r.PID, id[:min(len(id), 80)])
}
