package legacy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// place tells the packets apart that wait in the same directory for the one or
// the other.
type place string

const (
	toReceiver place = "receiver"
	toFiles    place = "files"
)

// file is the name of the file in which a packet waits.
func (p place) file(n int) string { return fmt.Sprintf("%s-%012d.json", p, n) }

// number is the inverse of file.
func (p place) number(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, string(p)+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(digits, ".json"))
	return n, err == nil && p.file(n) == name
}

// leftovers returns what an earlier Sender left, in order.
func leftovers(dir string) (map[place][]item, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("packets that wait: %w", err)
	}
	all := make(map[place][]item)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && strings.HasSuffix(e.Name(), unfinished) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it would be written again
			continue
		}
		for _, p := range []place{toReceiver, toFiles} {
			if n, ok := p.number(e.Name()); ok {
				info, err := e.Info()
				if err != nil {
					return nil, fmt.Errorf("packets that wait: %w", err)
				}
				all[p] = append(all[p], item{n: n, size: info.Size(), kept: true})
			}
		}
	}
	for _, items := range all {
		slices.SortFunc(items, func(a, b item) int { return a.n - b.n })
	}
	return all, nil
}

// deliverFile returns what writes packets into a directory.
func deliverFile(dir string) deliverer {
	return func(_ context.Context, n int, packet []byte) (int, error) {
		return 0, writeFile(dir, fmt.Sprintf("pserver_output_stats_%d.json", n), packet)
	}
}

// unfinished ends the name of a file that is being written.
const unfinished = ".tmp"

// writeFile writes a file so that it is there completely or not at all.
func writeFile(dir, name string, data []byte) error {
	temp := filepath.Join(dir, "."+name+unfinished)
	err := os.WriteFile(temp, data, 0o644)
	if err == nil {
		err = os.Rename(temp, filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

func readFile(dir, name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) }

func removeFile(dir, name string) error { return os.Remove(filepath.Join(dir, name)) }

// writable makes a directory if there is none, and tries to write to it.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*"+unfinished)
	if err != nil {
		return err
	}
	_ = os.Remove(f.Name())
	return f.Close()
}
