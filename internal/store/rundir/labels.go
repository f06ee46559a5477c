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

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// labelsFile holds what people said of the issues of the run.
const labelsFile = "labels.json"

// How much people may say.
const (
	maxLabels     = 10_000
	maxLabelKey   = 256      // bytes
	maxLabelNote  = 2000     // bytes
	maxLabelsFile = 64 << 20 // bytes
)

// Labels are what people said of the issues of a run, in a file of its directory,
// which is replaced as a whole. It is a dashboard.Labels. What another process, or
// a person, writes to the file is seen with the next question. A run that replaces
// the one in the directory finds the labels of issues that are the same.
type Labels struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	seen os.FileInfo                     // of the file that was read; nil: there is none
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

// labelsContent is what the file holds.
type labelsContent struct {
	Labels []runLabel `json:"labels"`
}

// Labels are all labels of a run, by key of the issue.
func (l *Labels) Labels(_ context.Context, run string) (map[string]api.Label, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(); err != nil {
		return nil, err
	}
	return l.all[run], nil
}

// SetLabel replaces the label of an issue, which is on disk when it returns.
func (l *Labels) SetLabel(_ context.Context, run string, label api.Label) error {
	if err := checkLabel(label); err != nil {
		return err
	}
	if label.At.IsZero() {
		label.At = l.now().UTC()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.read(); err != nil { // others may have written to it
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

// checkLabel says what is wrong with a label.
func checkLabel(l api.Label) error {
	switch l.State {
	case api.LabelOpen, api.LabelMuted, api.LabelExpected:
	default:
		return fmt.Errorf("unknown state %q (want open, muted, expected)", l.State)
	}
	odd := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }
	switch {
	case l.Key == "" || len(l.Key) > maxLabelKey || !utf8.ValidString(l.Key) || strings.ContainsFunc(l.Key, unicode.IsControl):
		return fmt.Errorf("invalid issue key %.50q (want 1 to %d bytes of text)", l.Key, maxLabelKey)
	case len(l.Note) > maxLabelNote:
		return fmt.Errorf("the note has %d bytes, and at most %d are kept: shorten it", len(l.Note), maxLabelNote)
	case !utf8.ValidString(l.Note) || strings.ContainsFunc(l.Note, odd):
		return errors.New("the note is not plain text")
	}
	return nil
}

// read reads the file if it is another than the one that was read last.
func (l *Labels) read() error {
	info, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		l.seen, l.all = nil, nil
		return nil
	}
	if err != nil {
		return err
	}
	if l.seen != nil && os.SameFile(info, l.seen) && info.ModTime().Equal(l.seen.ModTime()) && info.Size() == l.seen.Size() {
		return nil
	}
	all, info, err := readLabels(l.path)
	if err != nil {
		return fmt.Errorf("%s: %w; correct or remove it", l.path, err)
	}
	l.seen, l.all = info, all
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
		return nil, nil, fmt.Errorf("it has more than %d bytes", maxLabelsFile)
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
		return fmt.Errorf("%d issues have labels, which is all that are kept: remove some first", maxLabels)
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
		return fmt.Errorf("labels have more than %d bytes: remove some first", maxLabelsFile)
	}
	if err := Replace(l.path, b.Bytes(), 0o644); err != nil {
		return err
	}
	l.seen = nil // it is read again: another process may have written since
	return nil
}
