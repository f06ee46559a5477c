// Package paramwire holds the conventions of the parameter server and its clients
// besides their messages: subjects, shards of functions, and refusals.
package paramwire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/online/bus"
)

// Subject returns the subject of a kind of requests to a shard.
func Subject(run string, shard int, what string) string {
	return fmt.Sprintf("chimbuko.%s.ps.%d.%s", Token(run), shard, what)
}

// AnyShard returns the NATS pattern for the subjects of all shards.
func AnyShard(run, what string) string {
	return fmt.Sprintf("chimbuko.%s.ps.*.%s", Token(run), what)
}

// AnalyzerRequests are the requests that analyzers may send.
var AnalyzerRequests = []string{"register", "exchange", "delays", "outcome"}

// Token encodes a name as a token of a subject: letters, digits, '-' and '_'
// remain, other bytes become hexadecimal.
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

// ShardOf returns the shard, of n, that owns the model of a function: by the 64-bit
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

// refusedMark begins the text of a refusal.
const refusedMark = "refused: "

type refusal struct{ why string }

func (r *refusal) Error() string { return refusedMark + r.why }

// Refuse returns the error of a request that must not be retried.
func Refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// RefusedBy reports whether the error of a request is a refusal, and its reason.
func RefusedBy(err error) (why string, refused bool) {
	if remote, ok := errors.AsType[*bus.RemoteError](err); ok {
		return strings.CutPrefix(remote.Text, refusedMark)
	}
	return "", false
}

// StartedLater returns the reason to refuse an analyzer with a newer session.
func StartedLater(name string) string {
	return fmt.Sprintf("another analyzer named %q was started later (give each its own --node)", name)
}
