package truth

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Maximum lengths of lines, in bytes.
const (
	longestText = 64 << 10
	longestJSON = 4 << 20
)

// Read reads files, all files named truth.* of directories, and patterns, each file
// once. Errors name file and line, and the error covers all files; that of a pattern is
// a filepath.ErrBadPattern. A call may name a trouble that another file declares.
func Read(paths []string) (*Truth, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	r := newReader()
	var errs []error
	for _, path := range files {
		errs = append(errs, r.open(path))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r.finish()
}

// New returns the truth of troubles and of the calls that they affected.
func New(troubles []*Trouble, calls []Call) (*Truth, error) {
	r := newReader()
	for _, t := range troubles {
		if err := r.addTrouble(t); err != nil {
			return nil, err
		}
	}
	for i := range calls {
		if err := r.addCall("truth", i, &calls[i]); err != nil {
			return nil, err
		}
	}
	return r.finish()
}

// expand returns the files of paths, directories and patterns, each once.
func expand(given []string) (paths []string, err error) {
	for _, g := range given {
		matches := []string{g}
		info, err := os.Stat(g)
		switch {
		case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(g, "*?["):
			if matches, err = filepath.Glob(g); err != nil {
				return nil, fmt.Errorf("pattern %q: %w", g, err)
			}
			if len(matches) == 0 {
				return nil, fmt.Errorf("nothing matches %s", g)
			}
			matches, err = expand(matches)
		case err == nil && info.IsDir():
			matches, err = filesIn(g)
		}
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			if !slices.Contains(paths, m) {
				paths = append(paths, m)
			}
		}
	}
	return paths, nil
}

func filesIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && strings.HasPrefix(e.Name(), "truth.") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s: no file named truth.* in this directory", dir)
	}
	return paths, err
}

// reader collects the content of files.
type reader struct {
	truth     *Truth
	troubles  map[string]int32 // in truth.Troubles, by name
	mentioned []string         // where a trouble was first named, while it is not declared
	functions map[string]int32 // in truth.functions

	ranks      map[trace.Rank]bool // of the run with trouble from outside
	delayCount int
}

func newReader() *reader {
	return &reader{
		truth: &Truth{
			byEvent: make(map[event]int32), regions: make(map[trace.RankKey][]int32), delays: make(map[trace.Rank][]delay),
		},
		troubles: make(map[string]int32), functions: make(map[string]int32), ranks: make(map[trace.Rank]bool),
	}
}

func (r *reader) open(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	return r.file(path, f)
}

// file reads one file. Its first byte that is not white space decides the format.
func (r *reader) file(path string, content io.Reader) error {
	b := bufio.NewReader(content)
	n := 1
	first, err := b.ReadByte()
	for ; err == nil && bytes.IndexByte([]byte(" \t\r\n"), first) >= 0; first, err = b.ReadByte() {
		if first == '\n' {
			n++
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = b.UnreadByte()
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w", path, n, err)
	}
	longest, add := longestText, r.addText
	if first == '{' {
		longest, add = longestJSON, r.addJSON
	}
	lines := bufio.NewScanner(b)
	lines.Buffer(nil, longest)
	for ; lines.Scan(); n++ {
		if err := add(path, n, lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("the line is too long: %d bytes or more", longest)
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w", path, n, err)
	}
	return nil
}

func (r *reader) addJSON(path string, n int, line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	d, err := decode(line)
	switch {
	case err != nil:
		return err
	case d.call != nil:
		return r.addCall(path, n, d.call)
	case d.external != nil:
		return r.addExternal(d.external)
	}
	return r.addTrouble(d.trouble)
}

func (r *reader) addTrouble(t *Trouble) error {
	i, ok := r.troubles[t.Name]
	switch {
	case !ok:
		r.newTrouble(t.Name, "")
		i = int32(len(r.mentioned) - 1)
	case r.mentioned[i] == "":
		return fmt.Errorf("trouble %q is declared already", t.Name)
	}
	r.truth.Troubles[i], r.mentioned[i] = *t, ""
	return nil
}

// newTrouble makes room for a trouble, which is to be declared if it is only
// mentioned somewhere.
func (r *reader) newTrouble(name, mentioned string) {
	r.troubles[name] = int32(len(r.mentioned))
	r.truth.Troubles = append(r.truth.Troubles, Trouble{Name: name})
	r.mentioned = append(r.mentioned, mentioned)
}

func (r *reader) addCall(path string, n int, c *Call) error {
	id, ok := parseEvent(c.Program, c.Event)
	if !ok || id.rank != c.Rank {
		return fmt.Errorf("call %q is not an event of rank %d (want rank:step:row)", c.Event, c.Rank)
	}
	if _, ok := r.troubles[c.Trouble]; !ok {
		r.newTrouble(c.Trouble, fmt.Sprintf("%s:%d", path, n))
	}
	function, ok := r.functions[c.Function]
	if !ok {
		function = int32(len(r.truth.functions))
		r.functions[c.Function] = function
		r.truth.functions = append(r.truth.functions, c.Function)
	}
	calls := r.truth.listed
	l := listedCall{
		entry: c.Entry, injected: c.Injected, rank: c.Rank, victim: c.Role == Victim, minor: c.Minor,
		trouble: r.troubles[c.Trouble], function: function,
	}
	first, ok := r.truth.byEvent[id]
	if !ok {
		r.truth.byEvent[id] = int32(len(calls))
	} else {
		for i := first; ; i = calls[i].next {
			if calls[i].trouble == l.trouble {
				return fmt.Errorf("call %s is in trouble %q already", c.Event, c.Trouble)
			}
			if calls[i].next == 0 {
				break
			}
		}
		l.further, l.next = true, calls[first].next
		calls[first].next = int32(len(calls))
	}
	r.truth.listed = append(calls, l)
	return nil
}

// finish checks that all troubles are declared, and returns the Truth.
func (r *reader) finish() (*Truth, error) {
	t := r.truth
	var errs []error
	for i, at := range r.mentioned {
		if at != "" {
			errs = append(errs, fmt.Errorf("%s: no line declares trouble %q", at, t.Troubles[i].Name))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	r.finishExternal()
	t.groupTimed()
	t.extent = make([]extent, len(t.Troubles))
	for i := range t.listed {
		c := &t.listed[i]
		e := &t.extent[c.trouble]
		if c.victim {
			e.victims++
			e.waited += max(0, c.injected)
			continue
		}
		e.injected += max(0, c.injected)
		e.most = max(e.most, c.injected)
		switch {
		case c.minor:
			continue
		case e.causes == 0:
			e.begin = c.entry
		}
		e.causes++
		e.begin = min(e.begin, c.entry)
	}
	for i := range t.Troubles {
		trouble, e := &t.Troubles[i], &t.extent[i]
		if e.causes == 0 {
			e.begin = trouble.From
		}
		e.begin = max(e.begin, trouble.From)
		if trouble.Each {
			continue
		}
		ranks := slices.Clone(trouble.Ranks)
		slices.Sort(ranks)
		for _, rank := range slices.Compact(ranks) {
			p := trace.RankKey{Program: trouble.Program, Rank: rank}
			t.regions[p] = append(t.regions[p], int32(i))
		}
	}
	return t, nil
}
