package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Program describes the program to run and analyze.
type Program struct {
	Command    []string      // empty if the user starts the program
	Engine     string        // of ADIOS2: BP4, BP5 or SST
	Period     time.Duration // time between steps of its traces
	Grace      time.Duration // how long it may take to end after SIGTERM
	KeepTraces bool          // whether traces stay after a complete run

	ServeFlags   []string // of the services
	AnalyzeFlags []string // of the analyzer
}

// ExitError is the result of a program, which may have failed to start.
type ExitError struct {
	Code int
	Err  error // reason why it could not run; nil if it ran
}

func (e *ExitError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

func (e *ExitError) Unwrap() error { return e.Err }

// The flag for the engine of an analyzer, and its value for live streams.
const (
	engineFlag = "--engine="
	engineSST  = "sst"
)

// Exit codes of shells for commands that cannot run.
const (
	exitCannot  = 126
	exitUnknown = 127
)

// Run runs a program with the services and the analyzer of a new run, and returns its
// result as an ExitError. Without a command it prints the environment for the program and
// returns nil when the run has ended.
func Run(ctx context.Context, cfg Config, p *Program) (err error) {
	path := ""
	if len(p.Command) > 0 {
		if path, err = exec.LookPath(p.Command[0]); err != nil {
			if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
				return &ExitError{exitUnknown, err}
			}
			return &ExitError{exitCannot, err}
		}
	}
	c, err := NewCrew(cfg)
	if err != nil {
		return err
	}
	defer c.Stop()
	signals := catchSignals()
	defer signals.stop()
	if _, err := c.StartServices(ctx, p.ServeFlags...); err != nil {
		return err
	}
	pattern, engine := "*.bp", "bp"
	if p.Engine == "SST" { // its writer waits for the analyzer
		pattern, engine = "*.sst", engineSST
	}
	flags := append(slices.Clone(p.AnalyzeFlags), engineFlag+engine)
	if path != "" {
		flags = append(flags, "--until-notified")
	}
	c.StartAnalyzer("ad", "", append(flags, filepath.Join(runfiles.EscapeGlob(c.Traces()), pattern))...)
	variables := c.tauVariables(p)
	if path == "" {
		c.publish(variables)
		c.attend(signals)
		return nil
	}
	if ctx.Err() != nil { // the program would not get a signal from before its start
		return context.Cause(ctx)
	}
	return c.runProgram(path, p, variables, signals)
}

// runProgram runs the program until it and its analysis have ended.
func (c *Crew) runProgram(path string, p *Program, variables [][2]string, signals *signalCatcher) error {
	environ := slices.Clone(c.Environ)
	for _, v := range variables {
		environ = slices.DeleteFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, v[0]+"=") })
		environ = append(environ, v[0]+"="+v[1])
	}
	running := &process{crew: c, grace: p.Grace, period: p.Period}
	if err := running.start(path, p.Command, environ); err != nil {
		return &ExitError{exitCannot, err}
	}
	running.await(signals, true)
	c.conclude(signals, running.end)
	c.report(p.KeepTraces)
	running.await(signals, false)
	return &ExitError{Code: running.end.Code}
}

// tauVariables returns the environment variables that make TAU write traces.
func (c *Crew) tauVariables(p *Program) [][2]string {
	config := cmp.Or(viewer.Variable(c.Environ, "TAU_ADIOS2_CONFIG_FILE"), "adios2.xml")
	if _, err := os.Stat(config); err == nil {
		c.Printf("TAU takes the engine from %s, not %s", config, p.Engine)
	}
	return [][2]string{
		{"TAU_ADIOS2_PERIODIC", "1"},
		{"TAU_ADIOS2_PERIOD", fmt.Sprint(p.Period.Microseconds())},
		{"TAU_ADIOS2_ENGINE", p.Engine},
		{"TAU_ADIOS2_ONE_FILE", "0"},
		{"TAU_ADIOS2_FILENAME", filepath.Join(c.Traces(), "tau")},
	}
}

// publish prints the environment of a program that the user starts, and writes it to
// a file.
func (c *Crew) publish(variables [][2]string) {
	var b strings.Builder
	for _, v := range variables {
		fmt.Fprintf(&b, "export %s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
	}
	path := filepath.Join(c.dir, "tau.env")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil { //nolint:gosec // meant to be read by all
		c.warn("%v", err)
	}
	fmt.Fprint(c.Stdout, b.String())
	c.Printf("start the program with these variables, as after: . %s", path)
}

// attend waits until the run has ended, or a signal ends it.
func (c *Crew) attend(signals *signalCatcher) {
	select {
	case <-c.services.ended:
	case <-signals.c:
	}
	signals.settle()
	c.conclude(signals, nil)
	c.report(true)
}
