package truth

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// timedCall is a planted anomaly with only place and time.
type timedCall struct {
	rank     trace.Rank
	function string
	entry    trace.Ticks // of a kernel: its launch
	exit     trace.Ticks
	injected trace.Ticks
	kernel   bool
	trouble  int32 // in Truth.timedTroubles
}

func (r *reader) addText(_ string, _ int, line []byte) error {
	words := strings.Fields(string(line))
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return nil
	}
	parse := parseRow
	if words[0] == "TRUTH" {
		parse = parsePairs
	}
	p, err := parse(words)
	if err == nil && p.exit < p.entry {
		err = errors.New("the anomaly ends before it begins")
	}
	if err == nil {
		r.truth.timed = append(r.truth.timed, p)
	}
	return err
}

// numbers parses the numbers of a line and keeps the first error.
type numbers struct{ err error }

func (n *numbers) read(name, text string, bits int) int64 {
	v, err := strconv.ParseInt(text, 10, bits)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%s %q is not a valid integer", name, text)
	}
	return v
}

func (n *numbers) rank(text string) trace.Rank { return trace.Rank(n.read("rank", text, 32)) }

func (n *numbers) time(name, text string) trace.Ticks {
	return trace.Ticks(n.read(name, text, 64))
}

func parseRow(words []string) (p timedCall, err error) {
	if len(words) != 6 {
		return p, fmt.Errorf("%d words, want 6: rank, iteration, function, entry_us, exit_us, injected_us; or TRUTH kind=KIND and more",
			len(words))
	}
	var n numbers
	n.read("iteration", words[1], 64)
	p = timedCall{
		rank: n.rank(words[0]), function: words[2], entry: n.time("entry_us", words[3]),
		exit: n.time("exit_us", words[4]), injected: n.time("injected_us", words[5]),
	}
	return p, n.err
}

func parsePairs(words []string) (p timedCall, err error) {
	values := map[string]string{"rank": "0"}
	last := ""
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		switch {
		case ok:
			last, values[key] = key, value
		case last == "":
			return p, fmt.Errorf("%q is not of the form KEY=VALUE", w)
		default:
			values[last] += " " + w // f(int, int) is one value
		}
	}
	var n numbers
	need := func(key string) string {
		if values[key] == "" && n.err == nil {
			n.err = fmt.Errorf("%s= is missing", key)
		}
		return values[key]
	}
	p.rank = n.rank(values["rank"])
	switch kind := values["kind"]; kind {
	case "gpu_slow":
		p.kernel, p.function = true, need("kernel")
		p.entry = n.time("launch_us", need("launch_us"))
		p.exit = p.entry
	case "host_sleep":
		p.function = need("func")
		p.entry, p.exit = n.time("start_us", need("start_us")), n.time("end_us", need("end_us"))
		p.injected = p.exit - p.entry
	default:
		return p, fmt.Errorf("unknown kind %s (want gpu_slow or host_sleep)", kind)
	}
	return p, n.err
}
