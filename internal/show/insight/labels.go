package insight

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/text"
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

// Writable reports whether labels can be set.
func (in *Insight) Writable() bool { return in.Labels != nil && !in.ReadOnly }

// SetLabel says something of an issue.
func (in *Insight) SetLabel(ctx context.Context, run string, l api.Label) error {
	if !in.Writable() {
		return Problemf(api.Forbidden, "labels are set where the run directory can be written, by a server that is started without --read-only",
			"this server only reads")
	}
	k, err := in.known(ctx, run)
	if err != nil {
		return err
	}
	if _, ok := k.byKey[l.Key]; !ok && l.State+l.Note != api.LabelOpen { // one that is gone can be removed
		return noIssue(l.Key)
	}
	if err := in.Labels.SetLabel(ctx, k.run.Name, l); err != nil {
		return fmt.Errorf("the label cannot be kept: %w", err)
	}
	return nil
}

// IgnoreFile returns settings by which the functions of issues that are muted or expected
// are not judged the next time.
func (in *Insight) IgnoreFile(ctx context.Context, run string) (string, error) {
	return informed(ctx, in, run, func(ctx context.Context, q *asked) (string, error) {
		labels, err := in.labels(ctx, q.Run.Name)
		if err != nil {
			return "", err
		}
		return q.known.ignoreText(labels), nil
	})
}

// ignoreText writes TOML as --config reads it. In patterns only * and ? are special:
// what a name has of them matches itself, too.
func (k *known) ignoreText(labels map[string]api.Label) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Functions of issues of run %s that are muted or expected. Give this file to\n# chimbuko analyze or ad with "+
		"--config, and no call of these functions is judged.\n", text.OneLine(k.run.Name))
	b.WriteString("ignore = [\n")
	written := make(map[string]bool)
	for i := range k.issues {
		l, ok := labels[k.keys[i]]
		name := k.issues[i].Func
		if !ok || l.State == api.LabelOpen || written[name] {
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
