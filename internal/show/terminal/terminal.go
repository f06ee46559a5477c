// Package terminal is the overview of a run in a terminal: verdict, key figures, issues,
// what ranks lost over time, and how the pipeline fares, as the page shows them. It is
// the only package that knows Bubble Tea. It computes none of what it shows, and nothing
// of it needs colors: it is used over ssh, at 80 × 24.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	tea "charm.land/bubbletea/v2"
)

// Source is whom the terminal asks. One goroutine at a time calls it.
type Source interface {
	// Look is how the run is now, with heatmaps of so many columns and rows.
	Look(ctx context.Context, columns, rows int) (*Picture, error)
	// Evidence is all there is to say of one execution.
	Evidence(ctx context.Context, program int64, event string) (*api.Evidence, error)
}

// Picture is a run at one time.
type Picture struct {
	Overview *api.Overview
	Heatmap  *api.Heatmap // of what ranks lost without waits; nil: not known
	Status   *api.Status  // of the pipeline; nil: not known
}

// Issues is how many issues a picture should have.
const Issues = 100

// Options say where the overview is shown.
type Options struct {
	Input   io.Reader // nil: that of the process
	Output  io.Writer
	Environ []string      // tells what the terminal can do
	Every   time.Duration // between two looks at a run that goes on
}

// Show shows a run until the person quits or ctx ends.
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

// Print prints a run as it is now, without anything that a terminal must understand.
func Print(ctx context.Context, w io.Writer, from Source, width int) (live bool, err error) {
	const rows = 16
	p, err := from.Look(ctx, heatColumns(width), rows)
	if err != nil {
		return false, err
	}
	s := &screen{width: width}
	s.head(p, "")
	s.line("")
	s.issues(p.Overview, -1, 0, maxPrinted)
	s.line("")
	s.heat(p.Heatmap, rows)
	s.line("")
	s.pipeline(p, 20)
	_, err = fmt.Fprint(w, s.text())
	return p.Overview.Live, err
}

// maxPrinted is how many issues are printed.
const maxPrinted = 20
