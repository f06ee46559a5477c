package dashboard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Limits of labels.
const (
	maxNote      = 2000 // bytes
	maxLabelBody = 64 << 10
)

// setLabel says something of an issue.
func (s *server) setLabel(r *http.Request, p *params) (any, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	l, err := readLabel(r)
	if err != nil && s.insight.Writable() { // else SetLabel says why
		return nil, err
	}
	l.Key = r.PathValue("key")
	if err := s.insight.SetLabel(r.Context(), r.PathValue("run"), l); err != nil {
		return nil, err
	}
	s.board.wake()
	return l, nil
}

// readLabel reads the body of a request.
func readLabel(r *http.Request) (api.Label, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return api.Label{}, &problem{
			http.StatusUnsupportedMediaType, "the label is no JSON",
			`send {"state": "muted", "note": "…"} as application/json`,
		}
	}
	var in struct {
		State *string `json:"state"`
		Note  string  `json:"note"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxLabelBody))
	dec.DisallowUnknownFields()
	bad := func(format string, args ...any) (api.Label, error) {
		return api.Label{}, &problem{
			http.StatusBadRequest, fmt.Sprintf(format, args...),
			`send {"state": "open", "muted" or "expected", "note": "…"}`,
		}
	}
	if err := dec.Decode(&in); err != nil || dec.More() {
		return bad("the label is not understood: %v", cmp.Or(err, error(errMore)))
	}
	if in.State == nil {
		return bad("the label has no state")
	}
	switch *in.State {
	case api.LabelOpen, api.LabelMuted, api.LabelExpected:
	default:
		return bad("unknown state %.40q (want open, muted, expected)", *in.State)
	}
	if n := len(in.Note); n > maxNote {
		return bad("the note has %d bytes, %d are allowed", n, maxNote)
	}
	return api.Label{State: *in.State, Note: in.Note, At: time.Now().UTC()}, nil
}

// errMore says that there is something after the label.
var errMore = &problem{http.StatusBadRequest, "there is more than one value", ""}
