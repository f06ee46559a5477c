package supervise

import (
	"fmt"
	"os"
	"strings"
)

// lastLines returns the last lines of a log, indented, without control characters.
func lastLines(path string) string {
	const lines, width, most = 8, 400, 16 << 10
	text, err := tailOf(path, most)
	if err != nil {
		return "  " + err.Error() + "\n"
	}
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if text == "" {
		all[0] = "(empty)"
	}
	var b strings.Builder
	for _, line := range all[max(0, len(all)-lines):] {
		line = strings.Map(func(r rune) rune {
			if r < ' ' {
				return ' '
			}
			return r
		}, line)
		if len(line) > width {
			line = strings.ToValidUTF8(line[:width], "") + "…"
		}
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String()
}

// tailOf reads at most the last bytes of a file.
func tailOf(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(0, info.Size()-most)
	b := make([]byte, info.Size()-from)
	n, err := f.ReadAt(b, from)
	if n == len(b) {
		err = nil // io.EOF is none
	}
	return string(b[:n]), err
}
