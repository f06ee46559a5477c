package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/trace"
)

// readTruth reads all planted anomalies.
func readTruth(given []string) (planted []plantedCall, err error) {
	paths, err := expandTruth(given)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, path := range paths {
		p, err := readTruthFile(path)
		planted, errs = append(planted, p...), append(errs, err)
	}
	return planted, errors.Join(errs...)
}

// expandTruth turns files, directories and patterns into the paths of files,
// each once.
func expandTruth(given []string) (paths []string, err error) {
	for _, g := range given {
		matches := []string{g}
		info, err := os.Stat(g)
		switch {
		case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(g, "*?["):
			if matches, err = filepath.Glob(g); err != nil {
				return nil, usagef("pattern %q: %w", g, err)
			}
			if len(matches) == 0 {
				return nil, fmt.Errorf("nothing matches %s", g)
			}
			matches, err = expandTruth(matches)
		case err == nil && info.IsDir():
			matches, err = truthIn(g)
		}
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			if !slices.Contains(paths, m) {
				paths = append(paths, m)
			}
		}
	}
	return paths, nil
}

func truthIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && strings.HasPrefix(e.Name(), "truth.") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s: no file named truth.* in this directory", dir)
	}
	return paths, err
}

func readTruthFile(path string) (planted []plantedCall, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		n++
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		parse := parseTruthRow
		if words[0] == "TRUTH" {
			parse = parseTruthPairs
		}
		p, err := parse(words)
		if err == nil && p.exit < p.entry {
			err = errors.New("the anomaly ends before it begins")
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		planted = append(planted, p)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
	}
	return planted, nil
}

// truthNumbers reads the numbers of a line and keeps the first error.
type truthNumbers struct{ err error }

func (n *truthNumbers) read(name, text string, bits int) int64 {
	v, err := strconv.ParseInt(text, 10, bits)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%s %q is no whole number, or none that is possible", name, text)
	}
	return v
}

func (n *truthNumbers) rank(text string) trace.Rank { return trace.Rank(n.read("rank", text, 32)) }

func (n *truthNumbers) time(name, text string) trace.Micros {
	return trace.Micros(n.read(name, text, 64))
}

func parseTruthRow(words []string) (p plantedCall, err error) {
	if len(words) != 6 {
		return p, fmt.Errorf("%d words, want 6: rank, iteration, function, entry_us, exit_us, injected_us; or TRUTH kind=KIND and more", len(words))
	}
	var n truthNumbers
	n.read("iteration", words[1], 64)
	p = plantedCall{
		rank: n.rank(words[0]), function: words[2], entry: n.time("entry_us", words[3]),
		exit: n.time("exit_us", words[4]), injected: n.time("injected_us", words[5]),
	}
	return p, n.err
}

func parseTruthPairs(words []string) (p plantedCall, err error) {
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
	var n truthNumbers
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
		return p, fmt.Errorf("kind=%s is none of gpu_slow, host_sleep", kind)
	}
	return p, n.err
}
