// Command table measures the detectors and prints docs/quality.md; see make quality. Run
// it in the directory of the repository. It reports progress, and figures that miss their
// bounds, on standard error.
//
//	go run ./internal/lab/quality/table          print the page
//	go run ./internal/lab/quality/table -floors  and write the floors
//	go run ./internal/lab/quality/table -check   print nothing, but fail if a floor is missed
//	go run ./internal/lab/quality/table -peers   print only slow ranks and hosts, and the runs that miss a target
//	go run ./internal/lab/quality/table -default print only the results of the default detector
//	go run ./internal/lab/quality/table -findings print only the table of findings, and lists that depend on the seed
//
// Arguments are directories with recorded traces to use instead of the default ones.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/lab/quality"
)

const floorsFile = "internal/lab/quality/floors.csv"

func main() {
	floors := flag.Bool("floors", false, "also write "+floorsFile+" from the measurements")
	check := flag.Bool("check", false, "run the quick measurements, and fail if a figure misses its floor")
	onlyDefault := flag.Bool("default", false, "measure only the default detector")
	onlyFindings := flag.Bool("findings", false, "measure only the findings of the default detector")
	onlyPeers := flag.Bool("peers", false, "measure only slow ranks and hosts")
	only := flag.String("only", "", "measure only data sets with one of these texts in their names, separated by commas")
	fit := flag.Bool("fit", false, "measure slow ranks and hosts only in the fit half")
	flag.Parse()
	if *onlyDefault || *onlyFindings {
		quality.Detectors = []outlier.Algorithm{quality.DefaultDetector}
	}
	t := tool{out: os.Stdout, progress: os.Stderr, recorded: flag.Args()}
	t.only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	run := t.page
	switch {
	case *check:
		run = t.check
	case *floors:
		run = t.floors
	case *onlyFindings:
		run = t.findings
	case *onlyPeers:
		run = t.printPeers(math.MaxInt)
		if *fit {
			run = t.printPeers(0)
		}
	}
	if err := t.inTemp(context.Background(), run); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // this is a main
	}
}

// tool is the state of the command.
type tool struct {
	out, progress io.Writer
	recorded      []string // directories; empty: the default ones
	only          []string // parts of the names of data sets; empty: all
	temp          string
	sets          []quality.Set
	missing       []string // recorded traces
}

// inTemp finds the data sets and calls run, with a temporary directory that it removes
// afterwards.
func (t *tool) inTemp(ctx context.Context, run func(context.Context) error) (err error) {
	if t.temp, err = os.MkdirTemp("", "chimbuko-quality-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(t.temp)) }()
	if len(t.recorded) > 0 {
		for _, dir := range t.recorded {
			t.sets = append(t.sets, quality.TraceSet(".", dir))
		}
	} else if t.sets, t.missing, err = quality.Find(".", func(archive, name string) (string, error) {
		fmt.Fprintln(t.progress, "unpacking", name)
		return filepath.Join(t.temp, name), untar(ctx, archive, t.temp)
	}); err != nil {
		return err
	}
	for _, name := range t.missing {
		fmt.Fprintf(t.progress, "%s: skipped, because neither testdata/traces nor ../shared/traces has it\n", name)
	}
	scenarios, err := quality.Scenarios()
	if err != nil {
		return err
	}
	t.sets = slices.DeleteFunc(append(t.sets, scenarios...), func(s quality.Set) bool { return !t.includes(s.Name) })
	return run(ctx)
}

// page prints the page.
func (t *tool) page(ctx context.Context) error {
	all, results, err := t.measure(ctx, false)
	if err != nil {
		return err
	}
	slow, err := t.peers(ctx, math.MaxInt, math.MaxInt)
	if err != nil {
		return err
	}
	if err := below(all); err != nil {
		fmt.Fprintf(t.progress, "figures that miss their floors:\n%v\n", err)
	}
	return quality.WriteMarkdown(t.out, all, results, slow, t.missing)
}

// findings prints the table of findings.
func (t *tool) findings(ctx context.Context) error {
	_, results, err := t.measure(ctx, false)
	if err != nil {
		return err
	}
	quality.WriteLists(t.progress, results)
	return quality.WriteFindings(t.out, results)
}

// floors prints the page and writes the floors.
func (t *tool) floors(ctx context.Context) error {
	all, results, err := t.measure(ctx, false)
	if err != nil {
		return err
	}
	short, _, err := t.measure(ctx, true)
	if err != nil {
		return err
	}
	slow, err := t.peers(ctx, math.MaxInt, math.MaxInt)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := quality.WriteFloors(&text, slices.Concat(all, short)); err != nil {
		return err
	}
	if err := os.WriteFile(floorsFile, text.Bytes(), 0o644); err != nil { //nolint:gosec // it is read by all
		return err
	}
	return quality.WriteMarkdown(t.out, all, results, slow, t.missing)
}

// check fails if a floor is missed.
func (t *tool) check(ctx context.Context) error {
	all, _, err := t.measure(ctx, true)
	if err != nil {
		return err
	}
	return errors.Join(below(all), t.checkPeers(ctx))
}

// below returns the missed floors.
func below(all []*quality.Result) error {
	floors, err := quality.Floors()
	errs := []error{err}
	for _, r := range all {
		errs = append(errs, floors.Below(r))
	}
	return errors.Join(errs...)
}

// untar unpacks an archive with the programs tar and zstd.
func untar(ctx context.Context, archive, dir string) error {
	out, err := exec.CommandContext(ctx, "tar", "--zstd", "-xf", archive, "-C", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("tar --zstd: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// measure returns the sum of the runs of each data set with each detector, and the measures of findings of each data
// set, in order. If quick is true, each data set runs once. It uses all processors.
func (t *tool) measure(ctx context.Context, quick bool) ([]*quality.Result, []*quality.FindingResult, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var (
		mu   sync.Mutex
		done int
	)
	all := make([]*quality.Result, len(t.sets)*len(quality.Detectors))
	results := make([]*quality.FindingResult, len(t.sets))
	for i := range all {
		set, detector := t.sets[i/len(quality.Detectors)], quality.Detectors[i%len(quality.Detectors)]
		g.Go(func() error {
			began := time.Now()
			sum, findings, err := set.Measure(ctx, detector, t.temp, quick)
			if err != nil {
				return err
			}
			all[i] = sum
			if findings != nil {
				results[i/len(quality.Detectors)] = findings
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			fmt.Fprintf(t.progress, "%d of %d: %s, %s, %.1f s\n", done, len(all), all[i].Data, detector, time.Since(began).Seconds())
			return nil
		})
	}
	return all, results, g.Wait()
}
