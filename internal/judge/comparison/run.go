package comparison

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// MaxHosts is how many hosts are named of a call path, those that lost most.
const MaxHosts = 3

// MaxValues is how many values are listed of a fact, those of most ranks.
const MaxValues = 8

// maxText is how many bytes a value of a fact has at most.
const maxText = 4096

// Run is what is compared of a run. Its own times are in microseconds.
type Run struct {
	Name      string            `json:"name"`
	State     string            `json:"state"`
	Started   time.Time         `json:"started"`
	Version   string            `json:"version,omitempty"` // of the program that analyzed it
	Ranks     int64             `json:"ranks"`
	Hosts     []Host            `json:"hosts"`
	Settings  map[string]string `json:"settings,omitempty"`
	Facts     []Fact            `json:"facts"`
	Functions []Function        `json:"functions"` // each program and name once
	Paths     []Path            `json:"paths"`     // each after the one that it continues

	places map[place]int
}

// Host is where ranks ran.
type Host struct {
	Host  string `json:"host"`
	Ranks int64  `json:"ranks"`
}

// Fact is what the ranks of a program told of themselves under a name.
type Fact struct {
	Program  trace.Program `json:"program"`
	Name     string        `json:"name"`
	Values   []Value       `json:"values"`   // at most MaxValues, those of most ranks first
	Distinct int64         `json:"distinct"` // values
	Ranks    int64         `json:"ranks"`    // that told one
}

// Value is told by so many ranks.
type Value struct {
	Text  string `json:"text"`
	Ranks int64  `json:"ranks"`
}

// Function is what is known of all calls of a function.
type Function struct {
	Program   trace.Program   `json:"program"`
	Name      string          `json:"name"`
	OnGPU     bool            `json:"on_gpu,omitempty"`
	Calls     int64           `json:"calls"`
	Exclusive float64         `json:"exclusive_us"`
	Model     json.RawMessage `json:"model,omitempty"` // algo_params; nil: none
}

// Path is what is known of a call path.
type Path struct {
	Parent    int           `json:"parent"` // place of the path without the last function; -1: none
	Program   trace.Program `json:"program"`
	Function  string        `json:"function"` // the last
	Calls     int64         `json:"calls,omitempty"`
	Exclusive int64         `json:"exclusive_us,omitempty"`
	Anomalies int64         `json:"anomalies,omitempty"` // that were not withdrawn
	Lost      int64         `json:"lost_us,omitempty"`   // by them
	Hosts     []HostLost    `json:"hosts,omitempty"`     // at most MaxHosts, those that lost most first
}

// HostLost is what was lost on a host.
type HostLost struct {
	Host string `json:"host"`
	Lost int64  `json:"lost_us"`
}

type place struct {
	parent   int
	program  trace.Program
	function string
}

// Path returns the place in Paths of a call path, which is made if it is not there.
// funcs are from the outermost; there must be one.
func (r *Run) Path(program trace.Program, funcs []string) int {
	if r.places == nil {
		r.places = make(map[place]int, len(r.Paths))
		for i := range r.Paths {
			p := &r.Paths[i]
			r.places[place{p.Parent, p.Program, p.Function}] = i
		}
	}
	at := -1
	for _, f := range funcs {
		key := place{at, program, f}
		next, ok := r.places[key]
		if !ok {
			next = len(r.Paths)
			r.places[key] = next
			r.Paths = append(r.Paths, Path{Parent: at, Program: program, Function: f})
		}
		at = next
	}
	return at
}

// Fact adds a value that ranks told of themselves. Those of a name must come one after
// another, the one of most ranks first; distinct is how many values the name has in all.
func (r *Run) Fact(program trace.Program, name, value string, ranks, distinct, all int64) {
	k := len(r.Facts) - 1
	if k < 0 || r.Facts[k].Program != program || r.Facts[k].Name != name {
		r.Facts = append(r.Facts, Fact{Program: program, Name: name, Distinct: distinct, Ranks: all})
		k++
	}
	if f := &r.Facts[k]; len(f.Values) < MaxValues {
		if len(value) > maxText {
			value = strings.ToValidUTF8(value[:maxText], "") + "…"
		}
		f.Values = append(f.Values, Value{value, ranks})
	}
}

// Program reports whether the run has that program.
func (r *Run) Program(p trace.Program) bool {
	return slices.ContainsFunc(r.Functions, func(f Function) bool { return f.Program == p }) ||
		slices.ContainsFunc(r.Paths, func(t Path) bool { return t.Program == p })
}

// Function returns what is known of a function; nil if nothing is.
func (r *Run) Function(program trace.Program, name string) *Function {
	i := slices.IndexFunc(r.Functions, func(f Function) bool { return f.Program == program && f.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Functions[i]
}

func (r *Run) hosts() map[string]int64 {
	hosts := make(map[string]int64, len(r.Hosts))
	for _, h := range r.Hosts {
		hosts[h.Host] += h.Ranks
	}
	return hosts
}

func (r *Run) facts(only *trace.Program) map[trace.FuncKey]*Fact {
	facts := make(map[trace.FuncKey]*Fact, len(r.Facts))
	for i := range r.Facts {
		if f := &r.Facts[i]; only == nil || f.Program == *only {
			facts[trace.FuncKey{Program: f.Program, Name: f.Name}] = f
		}
	}
	return facts
}

func (r *Run) started() string {
	if r.Started.IsZero() {
		return ""
	}
	return r.Started.UTC().Format(time.RFC3339)
}

// ofEachRank reports whether each rank has a value of its own.
func (f *Fact) ofEachRank() bool { return f != nil && f.Distinct > 1 && f.Distinct == f.Ranks }

// text writes the values of a fact: the value, or which ones with how many ranks.
func (f *Fact) text() string {
	if f == nil || len(f.Values) == 0 {
		return ""
	}
	if f.Distinct == 1 {
		return cmp.Or(f.Values[0].Text, "(empty)")
	}
	var parts []string
	for _, v := range f.Values[:min(4, len(f.Values))] {
		parts = append(parts, v.Text+" ("+ranks(v.Ranks)+")")
	}
	text := strings.Join(parts, ", ")
	if rest := f.Distinct - int64(len(parts)); rest > 0 {
		text += ", and " + number(rest) + " more"
	}
	return text
}

func number(n int64) string { return text.Number(float64(n)) }

func ranks(n int64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 rank"
	}
	return number(n) + " ranks"
}

// The first fields of a file, by which it is known.
const (
	fileFormat  = "chimbuko baseline"
	fileVersion = 1
)

// maxFile is how many bytes a file has at most when it is not compressed.
const maxFile = 1 << 30

// ErrNoBaseline says that a file is something else.
var ErrNoBaseline = errors.New("no baseline that chimbuko baseline wrote")

type file struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	*Run    `json:"run"`
}

// Encode writes a run so that it can be compared when it is gone: JSON, compressed with
// gzip. The same run gives the same bytes.
func (r *Run) Encode(w io.Writer) error {
	z := gzip.NewWriter(w)
	enc := json.NewEncoder(z)
	enc.SetEscapeHTML(false)
	return errors.Join(enc.Encode(file{fileFormat, fileVersion, r}), z.Close())
}

// IsBaseline tells by its first bytes whether a file may be what Encode writes.
func IsBaseline(first []byte) bool { return bytes.HasPrefix(first, []byte{0x1f, 0x8b}) }

// Decode reads what Encode wrote. Whatever it returns can be compared.
func Decode(r io.Reader) (*Run, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBaseline, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBaseline, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrNoBaseline, maxFile)
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil || head.Format != fileFormat {
		return nil, errors.Join(ErrNoBaseline, err)
	}
	if head.Version != fileVersion {
		return nil, fmt.Errorf("the baseline has version %d of its format, and this chimbuko reads %d: write it again with chimbuko baseline",
			head.Version, fileVersion)
	}
	in := file{Run: new(Run)}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("the baseline is damaged: %w", err)
	}
	if in.Run == nil {
		return nil, errors.New("the baseline is damaged: it holds no run")
	}
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("the baseline is damaged: %w", err)
	}
	return in.Run, nil
}

// check returns what is wrong with a run that was read.
func (r *Run) check() error {
	seen := make(map[trace.FuncKey]bool)
	for _, f := range r.Functions {
		if key := (trace.FuncKey{Program: f.Program, Name: f.Name}); seen[key] {
			return fmt.Errorf("function %.80q is repeated", f.Name)
		} else {
			seen[key] = true
		}
		if f.Calls < 0 || !finite(f.Exclusive) {
			return fmt.Errorf("function %.80q has %d calls of %v us", f.Name, f.Calls, f.Exclusive)
		}
	}
	depths := make([]int, len(r.Paths))
	for i, p := range r.Paths {
		if p.Parent < -1 || p.Parent >= i || p.Parent >= 0 && r.Paths[p.Parent].Program != p.Program {
			return fmt.Errorf("call path %d continues %d", i, p.Parent)
		}
		if p.Parent >= 0 {
			depths[i] = depths[p.Parent] + 1
		}
		if depths[i] > maxDepth {
			return fmt.Errorf("call path %d has more than %d functions", i, maxDepth)
		}
		if p.Calls < 0 || p.Exclusive < 0 || p.Anomalies < 0 || p.Lost < 0 || p.Lost > maxSum || p.Exclusive > maxSum || p.Anomalies > maxSum {
			return fmt.Errorf("call path %d has numbers that cannot be", i)
		}
	}
	return nil
}

// maxDepth bounds the functions of a path: what is made of them must not grow with the
// square of their number.
const maxDepth = 10_000

// maxSum bounds times and counts of a path, so that sums of them do not overflow.
const maxSum = 1 << 53
