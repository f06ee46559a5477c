package insight

import (
	"context"
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Labels stores the labels of findings. It must be safe for concurrent use.
type Labels interface {
	// Labels returns all labels of a run by key of the finding. Neither side may change the
	// returned map.
	Labels(ctx context.Context, run string) (map[string]api.Label, error)
	// SetLabel replaces the label of a finding and returns after it is stored. State open
	// with an empty note removes it.
	SetLabel(ctx context.Context, run string, l api.Label) error
}

// Writable reports whether labels can be set.
func (in *Insight) Writable() bool { return in.Labels != nil && !in.ReadOnly }

// SetLabel replaces the label of a finding.
func (in *Insight) SetLabel(ctx context.Context, run string, l api.Label) error {
	if !in.Writable() {
		return api.Problemf(api.Forbidden, "start the server without --read-only, with a run directory that can be written",
			"this server cannot set labels")
	}
	d, err := in.data(ctx, run, in.caches.TryGet)
	if err != nil {
		return err
	}
	if _, ok := d.byKey[l.Key]; !ok && l.State+l.Note != api.LabelOpen { // labels of former findings can be removed
		return noFinding(l.Key)
	}
	if err := in.Labels.SetLabel(ctx, d.run.Name, l); err != nil {
		return fmt.Errorf("store the label: %w", err)
	}
	return nil
}

// IgnoreFile returns settings that exclude the functions of muted and expected findings from
// judgment.
func (in *Insight) IgnoreFile(ctx context.Context, run string) (string, error) {
	return withData(ctx, in, run, func(ctx context.Context, q *runQuery) (string, error) {
		labels, err := in.labels(ctx, q.Run.Name)
		if err != nil {
			return "", err
		}
		return q.data.ignoreText(labels), nil
	})
}

// ignoreText writes TOML for --config. The special characters * and ? of patterns also match
// themselves.
func (d *runData) ignoreText(labels map[string]api.Label) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Functions of the muted and expected findings of run %s. With this file as --config,\n# chimbuko analyze and ad "+
		"do not judge calls of these functions.\n", text.OneLine(d.run.Name))
	b.WriteString("ignore = [\n")
	written := make(map[string]bool)
	for i := range d.findings {
		l, ok := labels[d.keys[i]]
		name := d.findings[i].Func
		if !ok || l.State == api.LabelOpen || written[name] {
			continue
		}
		written[name] = true
		remark := l.State
		if l.Note != "" {
			remark += ": " + text.SingleSpaced(l.Note)
		}
		fmt.Fprintf(&b, "  %s, # %s\n", tomlText(name), remark)
	}
	b.WriteString("]\n")
	return b.String()
}

// tomlText returns a basic string of TOML, which is a string of JSON without DEL.
func tomlText(s string) string {
	quoted, _ := api.Marshal(s) // never fails
	return strings.ReplaceAll(string(quoted), "\x7f", `\u007f`)
}
