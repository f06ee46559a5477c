// Command growth analyses traces of 2000 steps and prints how much memory, in
// bytes, the process holds after 200 steps and after all of them.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

type nowhere struct{}

func (nowhere) Metadata(context.Context, trace.StepKey, []provenance.Metadata) error { return nil }

func (nowhere) Records(context.Context, trace.StepKey, []*provenance.Record, []*provenance.Record) error {
	return nil
}

func main() {
	cfg := analyzer.Default()
	cfg.SpoolDir = os.Args[1]
	var inputs []analyzer.Input
	for _, path := range os.Args[2:] {
		inputs = append(inputs, analyzer.Input{Path: path})
	}
	seen := 0
	look := func(done analyzer.ProgressReport) {
		if steps := done.Steps / len(inputs); steps != seen && (steps == 200 || steps == 2000) {
			seen = steps
			fmt.Println(held())
		}
	}
	if _, err := analyzer.New(cfg, nowhere{}, look).Run(context.Background(), inputs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// held returns the memory that the process has at the moment.
func held() (bytes int64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes * 1024
}
