// Package paramwire is what the parameter server and its clients agree on besides
// their messages: subjects, which shard owns a function, and refusals.
package paramwire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/bus"
)

// Subject is where a shard of the server of a run is asked.
func Subject(run string, shard int, what string) string {
	return fmt.Sprintf("chimbuko.%s.ps.%d.%s", Token(run), shard, what)
}

// AnyShard stands for the subjects of all shards, as NATS writes it.
func AnyShard(run, what string) string {
	return fmt.Sprintf("chimbuko.%s.ps.*.%s", Token(run), what)
}

// AnalyzersAsk is what clients ask; services ask more.
var AnalyzersAsk = []string{"register", "exchange", "outcome"}

// Token writes a name so that it can be part of a subject: letters, digits, '-'
// and '_' stay, all else becomes its bytes in hexadecimal.
func Token(name string) string {
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b = append(b, c)
		default:
			b = fmt.Appendf(b, "=%02x", c)
		}
	}
	return string(b)
}

// ShardOf returns which of n shards owns the model of a function, by the 64-bit
// FNV-1a hash of program and name.
func ShardOf(key trace.FuncKey, n int) int {
	if n == 1 {
		return 0
	}
	h := uint64(14695981039346656037)
	mix := func(c byte) { h = (h ^ uint64(c)) * 1099511628211 }
	var digits [10]byte
	for _, c := range strconv.AppendUint(digits[:0], uint64(key.Program), 10) {
		mix(c)
	}
	mix(0)
	for i := range len(key.Name) {
		mix(key.Name[i])
	}
	return int(h % uint64(n))
}

// refusedMark begins the text of a refusal, by which a client knows it.
const refusedMark = "refused: "

// refusal is the error of a request that can never be granted.
type refusal struct{ why string }

func (r *refusal) Error() string { return refusedMark + r.why }

// Refuse returns the error of a request that can never be granted.
func Refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// RefusedBy reports whether an answer is a refusal, and why.
func RefusedBy(err error) (why string, refused bool) {
	if remote, ok := errors.AsType[*bus.RemoteError](err); ok {
		return strings.CutPrefix(remote.Text, refusedMark)
	}
	return "", false
}

// StartedLater says that a newer session of an analyzer exists.
func StartedLater(name string) string {
	return fmt.Sprintf("another analyzer of the name %q was started later; give each a name with --node", name)
}
