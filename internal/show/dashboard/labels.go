package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Labels is where what people say of issues is kept. Several goroutines call it.
type Labels interface {
	// Labels are all labels of a run, by key of the issue; none is no error. The
	// caller does not change the map, and the implementation must not once it is
	// handed over.
	Labels(ctx context.Context, run string) (map[string]api.Label, error)
	// SetLabel replaces the label of an issue. It is kept when SetLabel returns;
	// state open with an empty note removes it.
	SetLabel(ctx context.Context, run string, l api.Label) error
}

// The states of a label.
const (
	LabelOpen     = "open"     // to be looked at, as are issues without a label
	LabelMuted    = "muted"    // not to be shown among the worst
	LabelExpected = "expected" // known to be so
)

// Limits of labels.
const (
	maxNote      = 2000 // bytes
	maxLabelBody = 64 << 10
)

// writable reports whether people can say something of issues here.
func (s *server) writable() bool { return s.Labels != nil && !s.ReadOnly }

// setLabel says something of an issue.
func (s *server) setLabel(r *http.Request) (any, error) {
	if err := newParams(r).done(); err != nil {
		return nil, err
	}
	if !s.writable() {
		return nil, &problem{http.StatusForbidden, "this server only reads", "labels are set where the run directory can be written, by a server that is started without --read-only"}
	}
	l, err := readLabel(r)
	if err != nil {
		return nil, err
	}
	k, err := s.known(r.Context(), r.PathValue("run"))
	if err != nil {
		return nil, err
	}
	l.Key = r.PathValue("key")
	if _, ok := k.byKey[l.Key]; !ok && l.State+l.Note != LabelOpen { // one that is gone can be removed
		return nil, noIssue(l.Key)
	}
	if err := s.Labels.SetLabel(r.Context(), k.run.Name, l); err != nil {
		return nil, fmt.Errorf("the label cannot be kept: %w", err)
	}
	s.board.wake()
	return l, nil
}

// readLabel reads the body of a request.
func readLabel(r *http.Request) (api.Label, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return api.Label{}, &problem{http.StatusUnsupportedMediaType, "the label is no JSON", `send {"state": "muted", "note": "…"} as application/json`}
	}
	var in struct {
		State *string `json:"state"`
		Note  string  `json:"note"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxLabelBody))
	dec.DisallowUnknownFields()
	bad := func(format string, args ...any) (api.Label, error) {
		return api.Label{}, &problem{http.StatusBadRequest, fmt.Sprintf(format, args...), `send {"state": "open", "muted" or "expected", "note": "…"}`}
	}
	if err := dec.Decode(&in); err != nil || dec.More() {
		return bad("the label is not understood: %v", cmp.Or(err, error(errMore)))
	}
	if in.State == nil {
		return bad("the label has no state")
	}
	switch *in.State {
	case LabelOpen, LabelMuted, LabelExpected:
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

// ignoreFile is settings by which the functions of issues that are muted or expected are
// not judged the next time.
func (s *server) ignoreFile(ctx context.Context, q *asked) (any, error) {
	if err := q.p.done(); err != nil {
		return nil, err
	}
	labels, err := s.labels(ctx, q.Run.Name)
	if err != nil {
		return nil, err
	}
	return &file{"text/plain; charset=utf-8", "", []byte(q.known.ignoreText(labels))}, nil
}

// ignoreText writes TOML as --config reads it. In patterns only * and ? are special:
// what a name has of them matches itself, too.
func (k *known) ignoreText(labels map[string]api.Label) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Functions of issues of run %s that are muted or expected. Give this file to\n# chimbuko analyze or ad with --config, and no call of these functions is judged.\n", oneLine(k.run.Name))
	b.WriteString("ignore = [\n")
	written := make(map[string]bool)
	for i := range k.issues {
		l, ok := labels[k.keys[i]]
		name := k.issues[i].Func
		if !ok || l.State == LabelOpen || written[name] {
			continue
		}
		written[name] = true
		remark := l.State
		if l.Note != "" {
			remark += ": " + strings.Join(strings.Fields(l.Note), " ")
		}
		fmt.Fprintf(&b, "  %s, # %s\n", tomlText(name), withoutControls(remark))
	}
	b.WriteString("]\n")
	return b.String()
}

// tomlText is a basic string of TOML.
func tomlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// withoutControls is a text that does not end a comment.
func withoutControls(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}
