package supervise

import (
	"fmt"
	"io"
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
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd) // otherwise the limit applies to the start
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return string(b), err
}
