package summary

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/stats"
)

// writer appends JSON. Numbers that are counts or times are written whole,
// others always with a fraction or an exponent, so that a reader that tells
// them apart finds the same types in each packet.
type writer struct{ b []byte }

// open begins an object or an array.
func (w *writer) open(c byte) {
	w.comma()
	w.b = append(w.b, c)
}

// close ends it.
func (w *writer) close(c byte) { w.b = append(w.b, c) }

// comma appends a comma if something precedes in the same object or array.
func (w *writer) comma() {
	if n := len(w.b); n > 0 {
		switch w.b[n-1] {
		case '{', '[', ':':
		default:
			w.b = append(w.b, ',')
		}
	}
}

// key appends a key, which must need no escapes.
func (w *writer) key(name string) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

// raw appends a value that is JSON.
func (w *writer) raw(name, value string) {
	w.key(name)
	w.b = append(w.b, value...)
}

func (w *writer) integer(name string, v int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

// float appends a number that may have a fraction. JSON has no infinity, for
// which the largest number is written, nor a NaN, for which 0 is.
func (w *writer) float(name string, v float64) {
	w.key(name)
	if math.IsNaN(v) {
		v = 0
	}
	v = min(max(v, -math.MaxFloat64), math.MaxFloat64)
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		w.b = strconv.AppendFloat(w.b, v, 'e', -1, 64)
		return
	}
	from := len(w.b)
	w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
	if bytes.IndexByte(w.b[from:], '.') < 0 {
		w.b = append(w.b, ".0"...)
	}
}

// rank appends the label of a rank, such as "0:12".
func (w *writer) rank(k trace.RankKey) {
	w.b = append(w.b, '"')
	w.b = strconv.AppendUint(w.b, uint64(k.Program), 10)
	w.b = append(w.b, ':')
	w.b = strconv.AppendInt(w.b, int64(k.Rank), 10)
	w.b = append(w.b, '"')
}

func (w *writer) metrics(name string, m *Metrics) {
	w.key(name)
	w.open('{')
	w.sums("count", &m.Count)
	w.integer("first_io_step", int64(m.FirstStep))
	w.integer("last_io_step", int64(m.LastStep))
	w.integer("max_timestamp", int64(m.Last))
	w.integer("min_timestamp", int64(m.First))
	w.summary("score", m.Score.Summary())
	w.sums("severity", &m.Severity)
	w.close('}')
}

func (w *writer) sums(name string, s *stats.Sums) { w.summary(name, s.Summary()) }

func (w *writer) summary(name string, s stats.Summary) {
	w.key(name)
	w.open('{')
	w.float("accumulate", s.Accumulate)
	w.float("count", s.Count)
	w.float("kurtosis", s.Kurtosis)
	w.float("maximum", s.Maximum)
	w.float("mean", s.Mean)
	w.float("minimum", s.Minimum)
	w.float("skewness", s.Skewness)
	w.float("stddev", s.Stddev)
	w.close('}')
}

// quote returns a text in JSON. Bytes that are no UTF-8 are replaced.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // does not happen to a string
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
