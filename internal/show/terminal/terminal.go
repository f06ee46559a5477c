// Package terminal shows the overview of a run in a terminal: verdict, key figures, findings,
// lost time of ranks, and the state of the pipeline, like the page. It is the only package that
// uses Bubble Tea. It works without colors, over ssh, at 80 × 24.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Source provides the data. One goroutine at a time calls it.
type Source interface {
	// Picture returns the present state of the run, with a heatmap of that many columns and rows.
	Picture(ctx context.Context, columns, rows int) (*Picture, error)
	// Evidence returns the evidence of an execution.
	Evidence(ctx context.Context, program int64, event string) (*api.Evidence, error)
}

// Picture is the state of a run at one time.
type Picture struct {
	Overview *api.Overview
	Heatmap  *api.Heatmap // of lost time without waits; may be nil
	Status   *api.Status  // may be nil
}

// Findings is the number of findings that a Picture should have.
const Findings = 100

// Options are the terminal and the interval of updates.
type Options struct {
	Input   io.Reader // nil: standard input
	Output  io.Writer
	Environ []string      // describes the terminal
	Every   time.Duration // between updates of a running run
}

// Show shows a run until the user quits or ctx ends.
func Show(ctx context.Context, from Source, opt Options) error {
	m := newModel(ctx, from, opt.Every)
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithOutput(opt.Output), tea.WithEnvironment(opt.Environ)}
	if opt.Input != nil {
		options = append(options, tea.WithInput(opt.Input))
	}
	_, err := tea.NewProgram(m, options...).Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil
	}
	return err
}

// Print prints the present state of a run as plain text.
func Print(ctx context.Context, w io.Writer, from Source, width int) (live bool, err error) {
	const rows = 16
	p, err := from.Picture(ctx, heatColumns(width), rows)
	if err != nil {
		return false, err
	}
	s := &screen{width: width}
	s.head(p, "")
	s.line("")
	s.findings(p.Overview, -1, 0, maxPrinted)
	s.line("")
	s.heat(p.Heatmap, rows)
	s.line("")
	s.pipeline(p, 20)
	_, err = fmt.Fprint(w, s.text())
	return p.Overview.Live, err
}

// maxPrinted bounds the findings that Print lists.
const maxPrinted = 20
