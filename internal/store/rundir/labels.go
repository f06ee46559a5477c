package rundir

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

const labelsFile = "labels.json"

// Limits of labels.
const (
	maxLabels     = 10_000
	maxLabelKey   = 256      // bytes
	maxLabelNote  = 2000     // bytes
	maxLabelsFile = 64 << 20 // bytes
)

// Labels are the labels that people gave to the findings of a run, in a file of its directory
// that is replaced atomically. It is a dashboard.Labels. It reads the file again after
// another process or a person has changed it. A run that replaces the one in the directory
// keeps the labels of findings with the same keys.
type Labels struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	read os.FileInfo                     // of the last read; nil if there was no file
	all  map[string]map[string]api.Label // by run and key; maps are replaced, not changed
}

// NewLabels returns the labels of the run directory at path.
func NewLabels(path string) *Labels {
	return &Labels{path: filepath.Join(path, labelsFile), now: time.Now}
}

// runLabel is a label in the file.
type runLabel struct {
	Run string `json:"run"`
	api.Label
}

// labelsContent is the content of the file.
type labelsContent struct {
	Labels []runLabel `json:"labels"`
}

// Labels returns the labels of a run, by key of the finding.
func (l *Labels) Labels(_ context.Context, run string) (map[string]api.Label, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return nil, err
	}
	return l.all[run], nil
}

// SetLabel replaces the label of a finding. It is on disk when SetLabel returns.
func (l *Labels) SetLabel(_ context.Context, run string, label api.Label) error {
	if err := checkLabel(label); err != nil {
		return err
	}
	if label.At.IsZero() {
		label.At = l.now().UTC()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil { // other processes may have changed the file
		return err
	}
	all, labels := maps.Clone(l.all), maps.Clone(l.all[run])
	if all == nil {
		all = make(map[string]map[string]api.Label)
	}
	if labels == nil {
		labels = make(map[string]api.Label)
	}
	if label.State == api.LabelOpen && label.Note == "" {
		delete(labels, label.Key)
	} else {
		labels[label.Key] = label
	}
	all[run] = labels
	return l.write(all)
}

// checkLabel returns an error for an invalid label.
func checkLabel(l api.Label) error {
	switch l.State {
	case api.LabelOpen, api.LabelMuted, api.LabelExpected:
	default:
		return fmt.Errorf("unknown state %q (want open, muted, expected)", l.State)
	}
	isControl := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }
	switch {
	case l.Key == "" || len(l.Key) > maxLabelKey || !utf8.ValidString(l.Key) || strings.ContainsFunc(l.Key, unicode.IsControl):
		return fmt.Errorf("invalid finding key %.50q (want 1 to %d bytes of text)", l.Key, maxLabelKey)
	case len(l.Note) > maxLabelNote:
		return fmt.Errorf("the note has %d bytes (limit %d)", len(l.Note), maxLabelNote)
	case !utf8.ValidString(l.Note) || strings.ContainsFunc(l.Note, isControl):
		return errors.New("the note is not plain text")
	}
	return nil
}

// refresh reads the file if it has changed.
func (l *Labels) refresh() error {
	info, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		l.read, l.all = nil, nil
		return nil
	}
	if err != nil {
		return err
	}
	if r := l.read; r != nil && os.SameFile(info, r) && info.ModTime().Equal(r.ModTime()) && info.Size() == r.Size() {
		return nil
	}
	all, info, err := readLabels(l.path)
	if err != nil {
		return fmt.Errorf("%s: %w (correct or remove the file)", l.path, err)
	}
	l.read, l.all = info, all
	return nil
}

func readLabels(path string) (map[string]map[string]api.Label, os.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxLabelsFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > maxLabelsFile {
		return nil, nil, fmt.Errorf("file too large (limit %d bytes)", maxLabelsFile)
	}
	var content labelsContent
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, nil, err
	}
	all := make(map[string]map[string]api.Label)
	for i, label := range content.Labels {
		if err := checkLabel(label.Label); err != nil {
			return nil, nil, fmt.Errorf("label %d: %w", i+1, err)
		}
		if all[label.Run] == nil {
			all[label.Run] = make(map[string]api.Label)
		}
		all[label.Run][label.Key] = label.Label
	}
	return all, info, nil
}

// write replaces the file.
func (l *Labels) write(all map[string]map[string]api.Label) error {
	content := labelsContent{Labels: []runLabel{}}
	for run, labels := range all {
		for _, label := range labels {
			content.Labels = append(content.Labels, runLabel{run, label})
		}
	}
	if len(content.Labels) > maxLabels {
		return fmt.Errorf("too many labels (limit %d; remove some first)", maxLabels)
	}
	slices.SortFunc(content.Labels, func(a, b runLabel) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Key, b.Key)) })
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(content); err != nil {
		return err
	}
	if b.Len() > maxLabelsFile {
		return fmt.Errorf("labels too large (limit %d bytes; remove some first)", maxLabelsFile)
	}
	if err := atomicfile.Write(l.path, b.Bytes(), 0o644); err != nil {
		return err
	}
	l.read = nil // read it again: another process may have written since
	return nil
}
