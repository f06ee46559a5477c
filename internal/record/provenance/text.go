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
