// Package doctor checks whether a machine can record traces with TAU and run Chimbuko's services, and advises what to do if
// it cannot.
package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"text/tabwriter"
	"time"
)

// Result is the result of a check.
type Result string

// Results of checks, from good to bad.
const (
	Good    Result = "ok"
	Note    Result = "note"    // matters only to some users
	Warning Result = "warning" // works, but not well
	Failure Result = "failure"
)

// Check is the outcome of a check.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Text   string `json:"text"`
	Do     string `json:"do,omitempty"` // advice
}

// Options are the subjects of the checks.
type Options struct {
	Version  string   // version of the program
	Dir      string   // directory of runs
	Services []string // addresses on which services will listen

	Environ  []string                                 // environment variables
	LookPath func(program string) (string, error)     // finds a program
	Output   func(name string, args ...string) string // runs a program and returns its output; empty if it fails
}

// System returns options for this process.
func System(ctx context.Context) Options {
	return Options{
		Dir: ".", Environ: os.Environ(), LookPath: exec.LookPath,
		Output: func(name string, args ...string) string {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			text, err := exec.CommandContext(ctx, name, args...).Output()
			if err != nil {
				return ""
			}
			return string(text)
		},
	}
}

// Examine runs all checks.
func Examine(o *Options) []Check {
	e := &examination{Options: o}
	e.add("version", Good, "", "chimbuko %s for %s/%s, %s", o.Version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	e.checkMachine()
	e.checkDisk()
	e.checkClock()
	e.checkPorts()
	e.checkTAU()
	e.checkVariables()
	e.checkADIOS2()
	return e.checks
}

// Worst returns the worst result.
func Worst(checks []Check) Result {
	worst := Good
	for _, c := range checks {
		if severity[c.Result] > severity[worst] {
			worst = c.Result
		}
	}
	return worst
}

var severity = map[Result]int{Good: 0, Note: 1, Warning: 2, Failure: 3}

// examination collects checks.
type examination struct {
	*Options
	checks []Check
}

func (e *examination) add(name string, r Result, do, format string, args ...any) {
	e.checks = append(e.checks, Check{Name: name, Result: r, Text: fmt.Sprintf(format, args...), Do: do})
}

// checkPorts briefly listens on the addresses of services.
func (e *examination) checkPorts() {
	for _, address := range append([]string{"127.0.0.1:0"}, e.Services...) {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
		if err != nil {
			e.add("ports", Failure, "end the program that uses the address, or choose another", "cannot listen on %s: %v", address, err)
			continue
		}
		_ = l.Close() // nothing was written
		if address == "127.0.0.1:0" {
			address = "this machine"
		}
		e.add("ports", Good, "", "services can listen on %s", address)
	}
}

// Print writes checks as a table, with the advice below each.
func Print(w io.Writer, checks []Check) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Result, c.Name, c.Text)
		if c.Do != "" {
			fmt.Fprintf(t, "\t\t→ %s\n", c.Do)
		}
	}
	return t.Flush()
}
