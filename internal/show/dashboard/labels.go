package dashboard

import (
	"fmt"
	"net/http"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Limits of labels in bytes.
const (
	maxNote      = 2000
	maxLabelBody = 64 << 10
)

// setLabel sets the label of a finding.
func (s *server) setLabel(p *params) (any, error) {
	if err := p.done(); err != nil {
		return nil, err
	}
	l, err := readLabel(p.r)
	if err != nil && s.insight.Writable() { // else SetLabel returns the reason
		return nil, err
	}
	l.Key = p.path("key")
	if err := s.insight.SetLabel(p.r.Context(), p.path("run"), l); err != nil {
		return nil, err
	}
	s.overviews.wake()
	return l, nil
}

func readLabel(r *http.Request) (api.Label, error) {
	var in struct {
		State *string `json:"state"`
		Note  string  `json:"note"`
	}
	if err := readJSON(r, &in, maxLabelBody, `{"state": "open", "muted" or "expected", "note": "…"}`); err != nil {
		return api.Label{}, err
	}
	invalid := ""
	switch {
	case in.State == nil:
		invalid = "the label has no state"
	case *in.State != api.LabelOpen && *in.State != api.LabelMuted && *in.State != api.LabelExpected:
		invalid = fmt.Sprintf("unknown state %.40q (want open, muted or expected)", *in.State)
	case len(in.Note) > maxNote:
		invalid = fmt.Sprintf("the note has %d bytes (at most %d)", len(in.Note), maxNote)
	default:
		return api.Label{State: *in.State, Note: in.Note, At: time.Now().UTC()}, nil
	}
	return api.Label{}, problem(http.StatusBadRequest, invalid, "")
}
