package provenance

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text returns s in a form that documents and databases can store: invalid UTF-8 and zero
// bytes become \xNN. It returns other text unchanged, so it is idempotent.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || r == 0 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// profilerStep is the name of the calls that PyTorch's profiler makes of training steps, without their numbers.
const profilerStep = "ProfilerStep"

// CallName returns the name of a call for people: a training step of PyTorch's profiler has its number, which is
// the step of the event ID, as in ProfilerStep#17.
func CallName(function, eventID string) string {
	if function != profilerStep {
		return function
	}
	if parts := strings.Split(eventID, ":"); len(parts) == 3 {
		return function + "#" + parts[1]
	}
	return function
}
