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

	"github.com/chimbuko/chimbuko/internal/base/fileformat"
	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Limits of a Run.
const (
	MaxHosts  = 3    // hosts of a call path, those that lost most
	MaxValues = 8    // values of a fact, those of most ranks
	maxText   = 4096 // bytes of a value of a fact
	maxDepth  = 10_000
	maxSum    = 1 << 53 // times and counts of a call path, so that sums do not overflow
)

// Run contains the comparable data of a run. Times are in microseconds.
type Run struct {
	Name      string            `json:"name"`
	State     string            `json:"state"`
	Started   time.Time         `json:"started"`
	Version   string            `json:"version,omitempty"` // version of the program that analyzed the run
	Ranks     int64             `json:"ranks"`
	Hosts     []Host            `json:"hosts"`
	Settings  map[string]string `json:"settings,omitempty"`
	Facts     []Fact            `json:"facts"`
	Functions []Function        `json:"functions"` // unique by program and name
	Paths     []Path            `json:"paths"`     // parents precede children

	Efficiency []Efficiency `json:"efficiency,omitempty"` // by program, if ranks were compared
	Slow       []Slow       `json:"slow,omitempty"`       // at most MaxSlow, the costliest first

	index map[pathStep]int
}

// Host is a host on which ranks ran.
type Host struct {
	Host  string `json:"host"`
	Ranks int64  `json:"ranks"`
}

// Fact is a piece of metadata of the ranks of a program.
type Fact struct {
	Program  trace.Program `json:"program"`
	Name     string        `json:"name"`
	Values   []Value       `json:"values"`   // at most MaxValues, in descending order of ranks
	Distinct int64         `json:"distinct"` // number of distinct values
	Ranks    int64         `json:"ranks"`    // number of ranks with a value
}

// Value is a value of a Fact and the number of ranks that have it.
type Value struct {
	Text  string `json:"text"`
	Ranks int64  `json:"ranks"`
}

// Function contains the sums of all calls of a function, and of its anomalies that were not withdrawn.
type Function struct {
	Program   trace.Program   `json:"program" sql:"program"`
	Name      string          `json:"name" sql:"function"`
	OnGPU     bool            `json:"on_gpu,omitempty" sql:"on_gpu"`
	Calls     int64           `json:"calls" sql:"calls"`
	Exclusive float64         `json:"exclusive_us" sql:"exclusive_us"`
	Model     json.RawMessage `json:"model,omitempty" sql:"model"` // algo_params, or nil
	Anomalies int64           `json:"-" sql:"anomalies"`           // in Sums only; a Run has them by call path
	Lost      float64         `json:"-" sql:"lost_us"`
}

// Merge adds the sums of o, a function with the same name. It keeps the model of f, if any.
func (f *Function) Merge(o *Function) {
	if f.Model == nil && len(o.Model) > 0 {
		f.Model = o.Model
	}
	f.OnGPU = f.OnGPU || o.OnGPU
	f.Calls += o.Calls
	f.Exclusive += o.Exclusive
	f.Anomalies += o.Anomalies
	f.Lost += o.Lost
}

// Key returns the key of the function.
func (f *Function) Key() trace.FuncKey { return trace.FuncKey{Program: f.Program, Name: f.Name} }

// Path contains the sums of a call path.
type Path struct {
	Parent    int           `json:"parent"` // index of the path without the last function, or -1
	Program   trace.Program `json:"program"`
	Function  string        `json:"function"` // last function of the path
	Calls     int64         `json:"calls,omitempty"`
	Exclusive float64       `json:"exclusive_us,omitempty"`
	Anomalies int64         `json:"anomalies,omitempty"` // not withdrawn
	Lost      float64       `json:"lost_us,omitempty"`   // by these anomalies
	Hosts     []HostLost    `json:"hosts,omitempty"`     // at most MaxHosts, in descending order of time lost
}

// HostLost is the time lost on a host.
type HostLost struct {
	Host string  `json:"host"`
	Lost float64 `json:"lost_us"`
}

// pathStep identifies a call path by its parent and its last function.
type pathStep struct {
	parent   int
	program  trace.Program
	function string
}

// Path returns the index in Paths of a call path, and adds the path if it is missing. funcs has at least one function and
// begins with the outermost.
func (r *Run) Path(program trace.Program, funcs []string) int {
	at := -1
	for _, f := range funcs {
		at = r.Child(at, program, f)
	}
	return at
}

// Child is like Path for the path of a function that parent calls. parent is -1 for the outermost function.
func (r *Run) Child(parent int, program trace.Program, function string) int {
	if r.index == nil {
		r.index = make(map[pathStep]int, len(r.Paths))
		for i := range r.Paths {
			p := &r.Paths[i]
			r.index[pathStep{p.Parent, p.Program, p.Function}] = i
		}
	}
	key := pathStep{parent, program, function}
	at, ok := r.index[key]
	if !ok {
		at = len(r.Paths)
		r.index[key] = at
		r.Paths = append(r.Paths, Path{Parent: parent, Program: program, Function: function})
	}
	return at
}

// Fact adds a value of metadata that ranks ranks have. Calls for the same name must follow each other, in descending order of
// ranks. distinct is the number of distinct values of the name, and all the number of ranks with a value.
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

// Function returns a function, or nil.
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

// perRank reports whether each rank has a different value.
func (f *Fact) perRank() bool { return f != nil && f.Distinct > 1 && f.Distinct == f.Ranks }

// text returns the value of a fact, or the most frequent values with their ranks.
func (f *Fact) text() string {
	if f == nil || len(f.Values) == 0 {
		return ""
	}
	if f.Distinct == 1 {
		return cmp.Or(f.Values[0].Text, "(empty)")
	}
	var parts []string
	for _, v := range f.Values[:min(4, len(f.Values))] {
		parts = append(parts, v.Text+" ("+rankCount(v.Ranks)+")")
	}
	words := strings.Join(parts, ", ")
	if rest := f.Distinct - int64(len(parts)); rest > 0 {
		words += ", and " + text.Int(rest) + " more"
	}
	return words
}

func rankCount(n int64) string {
	if n == 0 {
		return ""
	}
	return text.Count(n, "rank")
}

// Name and limit of baseline files.
const (
	fileFormat = "chimbuko baseline"
	maxFile    = 1 << 30 // bytes, uncompressed
)

// BaselineFormat is the format of baseline files.
var BaselineFormat = fileformat.Format{Number: 1, Oldest: 1, Renew: "write the baseline again with chimbuko baseline"}

// ErrNoBaseline reports a file that is not a baseline.
var ErrNoBaseline = errors.New("not a file of chimbuko baseline")

type fileHead struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

type file struct {
	fileHead
	*Run `json:"run"`
}

// Encode writes a run as a baseline file: JSON compressed with gzip. Equal runs give equal bytes.
func (r *Run) Encode(w io.Writer) error {
	z := gzip.NewWriter(w)
	enc := json.NewEncoder(z)
	enc.SetEscapeHTML(false)
	return errors.Join(enc.Encode(file{fileHead{fileFormat, BaselineFormat.Number}, r}), z.Close())
}

// IsBaseline reports whether a file that begins with these bytes may be a baseline.
func IsBaseline(first []byte) bool { return bytes.HasPrefix(first, []byte{0x1f, 0x8b}) }

// Decode reads and checks a baseline file.
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
		return nil, fmt.Errorf("%w: more than %d bytes", ErrNoBaseline, maxFile)
	}
	var head fileHead
	if err := json.Unmarshal(text, &head); err != nil || head.Format != fileFormat {
		return nil, errors.Join(ErrNoBaseline, err)
	}
	if err := BaselineFormat.Check(head.Version); err != nil {
		return nil, err
	}
	in := file{Run: new(Run)}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("the baseline is damaged: %w", err)
	}
	if in.Run == nil {
		return nil, errors.New("the baseline is damaged: no run")
	}
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("the baseline is damaged: %w", err)
	}
	return in.Run, nil
}

// check returns an error if a decoded run breaks an invariant.
func (r *Run) check() error {
	seen := make(map[trace.FuncKey]bool)
	for i := range r.Functions {
		f := &r.Functions[i]
		if seen[f.Key()] {
			return fmt.Errorf("function %.80q is repeated", f.Name)
		}
		seen[f.Key()] = true
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
			return fmt.Errorf("call path %d has impossible numbers", i)
		}
	}
	return nil
}
