package recordfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// schema describes the JSON objects of one place in the schema of the provenance database.
// Its fields, 64 at most, are those of a struct with json tags.
type schema struct {
	path     string // of the object in a record, for notes
	fields   []field
	index    map[string]int
	required uint64 // a bit for each field
}

type field struct {
	name string
	at   []int // field of the struct
	set  setter
}

// setter sets a field of a struct to a value that is not null.
type setter func(d *decoder, into reflect.Value, v value) error

// requiredFields are the fields without which an object is an error.
var requiredFields = map[reflect.Type][]string{
	reflect.TypeFor[provenance.Record]():          {"entry", "event_id", "exit", "fid", "func", "rid", "runtime_exclusive", "tid"},
	reflect.TypeFor[provenance.StackEntry]():      {"func"},
	reflect.TypeFor[provenance.WindowEntry]():     {"func"},
	reflect.TypeFor[provenance.CounterEntry]():    {"counter_name", "counter_value"},
	reflect.TypeFor[provenance.StateEntry]():      {"field"},
	reflect.TypeFor[provenance.Metadata]():        {"descr", "rid", "value"},
	reflect.TypeFor[provenance.FuncStats]():       {"fid", "fname"},
	reflect.TypeFor[provenance.AnomalyMetrics]():  {"anomaly_count"},
	reflect.TypeFor[provenance.CounterStats]():    {"counter"},
	reflect.TypeFor[provenance.ADModel]():         {"fid", "func_name"},
	reflect.TypeFor[provenance.PathStats]():       {"calls", "exclusive_us", "fid", "func", "node", "parent"},
	reflect.TypeFor[provenance.RankLoad]():        {"elapsed_us", "pid", "rid", "tid", "useful_us", "wait_us"},
	reflect.TypeFor[provenance.LoadWindow]():      {"from_s", "to_s", "useful_us", "wait_us"},
	reflect.TypeFor[provenance.Efficiency]():      {"communication", "entire", "from_s", "load_balance", "parallel", "pid", "to_s"},
	reflect.TypeFor[provenance.SlowPeer]():        {"from_s", "pattern", "pid", "ranks", "ratio"},
	reflect.TypeFor[provenance.SlowFunction]():    {"function"},
	reflect.TypeFor[provenance.RankFunction]():    {"function"},
	reflect.TypeFor[provenance.SlowCounter]():     {"counter", "peers_value", "value"},
	reflect.TypeFor[provenance.GPUTime]():         {"compute_us", "idle_us", "pid", "rid", "total_us"},
	reflect.TypeFor[provenance.CollectiveStats](): {"calls", "latency_sum_us", "operation", "pid"},
	reflect.TypeFor[provenance.RankClock]():       {"offset_us", "pid", "rid"},
	reflect.TypeFor[stats.Summary]():              {"count"},
}

// sharedNames are the fields with text that many records share.
var sharedNames = []string{
	"func", "counter_name", "type", "field", "hostname", "kind", "descr", "host", "hosts", "pattern", "function", "counter",
}

// schemaOf returns the schema of the objects that stand for structs of a type.
func schemaOf(path string, t reflect.Type) *schema {
	s := &schema{path: path, index: make(map[string]int)}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			s.add(name, f.Index, setterOf(strings.TrimPrefix(path+"."+name, "."), name, f.Type))
		}
	}
	switch t { // fields of version 1
	case reflect.TypeFor[provenance.StackEntry]():
		s.add("entry_time", s.fields[s.index["entry"]].at, setInteger)
	case reflect.TypeFor[provenance.Record]():
		s.add("func_stats", s.fields[s.index["algo_params"]].at, setFuncStats)
	}
	for _, name := range requiredFields[t] {
		s.required |= 1 << s.index[name]
	}
	return s
}

func (s *schema) add(name string, at []int, set setter) {
	s.index[name] = len(s.fields)
	s.fields = append(s.fields, field{name, at, set})
}

// setterOf returns the setter of a field.
func setterOf(path, name string, t reflect.Type) setter {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return setModel
	case t == reflect.TypeFor[provenance.Status]():
		return setStatus
	case t == reflect.TypeFor[stats.Summary]():
		return setSummary(schemaOf(path, t))
	case t == reflect.TypeFor[trace.Ticks]() && slices.Contains(unknowableTimes, name):
		return setTime
	case t == reflect.TypeFor[*uint64]():
		return setSize
	case slices.Contains(unsignedFields, name):
		return setSigned
	}
	switch t.Kind() {
	case reflect.Interface: // gpu_parent
		return setParent(schemaOf(path, reflect.TypeFor[provenance.GPUParent]()))
	case reflect.Struct:
		return setStruct(schemaOf(path, t))
	case reflect.Pointer:
		if t.Elem().Kind() != reflect.Struct {
			return setOptional(setterOf(path, name, t.Elem()))
		}
		return setPointer(schemaOf(path, t.Elem()))
	case reflect.Slice:
		return setList(setElement(path, name, t.Elem()))
	case reflect.Bool:
		return setBool
	case reflect.Float64:
		return setFloat
	case reflect.String:
		return setText(slices.Contains(sharedNames, name))
	}
	return setInteger
}

// read reads an object into the struct that a pointer refers to, and returns which fields
// the object has, a bit for each.
func (s *schema) read(d *decoder, v value, into any) (seen uint64, err error) {
	return s.readInto(d, v, reflect.ValueOf(into).Elem())
}

// readInto reads an object. It skips fields that are null. It counts unknown fields in the
// notes, except the number that the original's database gave to a record.
func (s *schema) readInto(d *decoder, v value, into reflect.Value) (seen uint64, err error) {
	if !v.isObject() {
		return 0, v.wrong("%s is not an object", v.excerpt())
	}
	for name, member := range v.members() {
		i, ok := s.find(name)
		switch {
		case !ok && string(name.text) != `"__id"`:
			text, _ := d.text(name) // is a string
			d.notes.unknownField(s.path, text)
		case !ok || member.isNull():
		default:
			if seen&(1<<i) != 0 {
				d.notes.Add(noteTwice, 1)
			}
			seen |= 1 << i
			if err := s.fields[i].set(d, into.FieldByIndex(s.fields[i].at), member); err != nil {
				return seen, inside(s.fields[i].name, err)
			}
		}
	}
	if missing := s.required &^ seen; missing != 0 {
		return seen, v.wrong("without %s", strings.Join(s.names(missing), ", "))
	}
	return seen, nil
}

// find returns the index of the field with a name.
func (s *schema) find(name value) (int, bool) {
	text := name.text[1 : len(name.text)-1]
	if i, ok := s.index[string(text)]; ok {
		return i, true
	}
	i, ok := s.index[unquote(text)]
	return i, ok
}

// has reports whether a field was seen.
func (s *schema) has(seen uint64, name string) bool { return seen&(1<<s.index[name]) != 0 }

// names returns the sorted names of fields.
func (s *schema) names(which uint64) (names []string) {
	for i := range s.fields {
		if which&(1<<i) != 0 {
			names = append(names, s.fields[i].name)
		}
	}
	slices.Sort(names)
	return names
}

// inside adds the name of a part of a record to a fault.
func inside(part string, err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return &fault{f.at, part + ": " + f.text}
	}
	return err
}

// setInteger sets an integer that must fit the field.
func setInteger(_ *decoder, into reflect.Value, v value) error {
	w, err := v.integer()
	if err != nil {
		return err
	}
	n := int64(w.abs)
	if w.neg {
		n = -n
	}
	switch {
	case into.CanUint() && !w.neg && !into.OverflowUint(w.abs):
		into.SetUint(w.abs)
	case into.CanInt() && w.neg == (n < 0) && !into.OverflowInt(n):
		into.SetInt(n)
	default:
		return v.wrong("%s is too large or too small", v.excerpt())
	}
	return nil
}

// unknownTime is the value of unknown times.
const unknownTime trace.Ticks = -1

// unknowableTimes are the times for which the original writes 2^64-1 if it does not have
// them.
var unknowableTimes = []string{"ts", "timestamp", "io_step_tend", "io_step_tstart", "max_timestamp", "min_timestamp"}

func setTime(d *decoder, into reflect.Value, v value) error {
	if w, err := v.integer(); err == nil && w == (integer{abs: math.MaxUint64}) {
		d.notes.Add(noteUnknownTime, 1)
		into.SetInt(int64(unknownTime))
		return nil
	}
	return setInteger(d, into, v)
}

// setSize sets the size of a message. The original keeps impossible ones of TAU.
func setSize(d *decoder, into reflect.Value, v value) error {
	size := new(uint64)
	if w, err := v.integer(); err == nil && (w.neg || w.abs > trace.MaxSize) {
		d.notes.Add(noteUnknownSize, 1)
		size = nil
	} else if err := setInteger(d, reflect.ValueOf(size).Elem(), v); err != nil {
		return err
	}
	into.Set(reflect.ValueOf(size))
	return nil
}

// unsignedFields are signed numbers of 32 bits that the original writes without a sign: -1
// may be 2^32-1 or 2^64-1.
var unsignedFields = []string{"src", "tag", "tar"}

func setSigned(d *decoder, into reflect.Value, v value) error {
	w, err := v.integer()
	if err == nil && !w.neg && (w.abs > math.MaxInt32 && w.abs <= math.MaxUint32 || w.abs >= 1<<64-1<<31) {
		into.SetInt(int64(int32(uint32(w.abs))))
		return nil
	}
	return setInteger(d, into, v)
}

func setFloat(_ *decoder, into reflect.Value, v value) error {
	f, err := v.float()
	into.SetFloat(f)
	return err
}

func setBool(_ *decoder, into reflect.Value, v value) error {
	into.SetBool(v.text[0] == 't')
	if v.text[0] != 't' && v.text[0] != 'f' {
		return v.wrong("%s is neither true nor false", v.excerpt())
	}
	return nil
}

func setText(shared bool) setter {
	read := (*decoder).text
	if shared {
		read = (*decoder).name
	}
	return func(d *decoder, into reflect.Value, v value) error {
		s, err := read(d, v)
		into.SetString(s)
		return err
	}
}

func setStruct(s *schema) setter {
	return func(d *decoder, into reflect.Value, v value) error {
		into.SetZero()
		_, err := s.readInto(d, v, into)
		return err
	}
}

func setPointer(s *schema) setter {
	return func(d *decoder, into reflect.Value, v value) error {
		p := reflect.New(into.Type().Elem())
		if _, err := s.readInto(d, v, p.Elem()); err != nil {
			return err
		}
		// The original writes metrics of no anomaly after it removed all of them.
		if m, ok := reflect.TypeAssert[*provenance.AnomalyMetrics](p); ok && m.Count.Count == 0 {
			d.notes.Add(noteNoAnomaly, 1)
			p = reflect.Zero(into.Type())
		}
		into.Set(p)
		return nil
	}
}

// setOptional sets a number that may be null.
func setOptional(set setter) setter {
	return func(d *decoder, into reflect.Value, v value) error {
		p := reflect.New(into.Type().Elem())
		into.Set(p)
		return set(d, p.Elem(), v)
	}
}

// setElement returns the setter of the elements of a list, which are zero before.
func setElement(path, name string, t reflect.Type) setter {
	if t.Kind() != reflect.Struct {
		return setterOf(path, name, t)
	}
	s := schemaOf(path, t)
	return func(d *decoder, into reflect.Value, v value) error {
		_, err := s.readInto(d, v, into)
		return err
	}
}

func setList(set setter) setter {
	return func(d *decoder, into reflect.Value, v value) error {
		if !v.isArray() {
			return v.wrong("%s is not an array", v.excerpt())
		}
		into.Set(reflect.MakeSlice(into.Type(), 0, 0))
		for v := range v.elements() {
			n := into.Len()
			into.Grow(1)
			into.SetLen(n + 1)
			into.Index(n).SetZero()
			if err := set(d, into.Index(n), v); err != nil {
				return inside(fmt.Sprint(n), err)
			}
		}
		return nil
	}
}

// setSummary sets statistics. The original writes no sum where it did not need one, and
// meaningless extremes where there is no value.
func setSummary(s *schema) setter {
	return func(d *decoder, into reflect.Value, v value) error {
		var sum stats.Summary
		_, err := s.read(d, v, &sum)
		switch {
		case sum.Count == 0:
			sum = stats.Summary{}
		case sum.Accumulate == 0:
			sum.Accumulate = sum.Mean * sum.Count
		}
		into.Set(reflect.ValueOf(sum))
		return err
	}
}

// setModel sets the parameters of a model.
func setModel(d *decoder, into reflect.Value, v value) error {
	m, err := d.model(v)
	into.SetBytes(m)
	return err
}

// setFuncStats sets the model of version 1, the statistics of the function.
func setFuncStats(d *decoder, into reflect.Value, v value) error {
	if !into.IsNil() {
		return nil
	}
	return setModel(d, into, v)
}

func setStatus(d *decoder, into reflect.Value, v value) error {
	s, err := d.name(v)
	if err != nil {
		return err
	}
	into.SetString(s)
	switch provenance.Status(s) {
	case "", provenance.Confirmed, provenance.Withdrawn, provenance.Promoted:
		return nil
	}
	return v.wrong("%s is not confirmed, withdrawn or promoted", v.excerpt())
}

// setParent sets the launch of a kernel, or the text that explains why it is missing, as
// provenance.NewRecord does.
func setParent(s *schema) setter {
	return func(d *decoder, into reflect.Value, v value) error {
		if v.isString() {
			text, err := d.name(v)
			into.Set(reflect.ValueOf(text))
			return err
		}
		var p provenance.GPUParent
		if _, err := s.read(d, v, &p); err != nil {
			return err
		}
		p.CallStack = orEmpty(p.CallStack)
		if len(p.CallStack) > 0 && p.CallStack[0].EventID == "" { // version 1
			p.CallStack[0].EventID = p.EventID
		}
		into.Set(reflect.ValueOf(p))
		return nil
	}
}
