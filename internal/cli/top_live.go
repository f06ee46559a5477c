package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"
	"github.com/chimbuko/chimbuko/internal/show/viewer"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/show/terminal"
)

// liveFlags are the flags of `top --live`.
type liveFlags struct {
	live  bool
	every time.Duration
}

func (l *liveFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&l.live, "live", false, "the overview of the page in this terminal; printed once where there is none")
	f.DurationVar(&l.every, "every", 2*time.Second, "time between two looks with --live")
}

// check says which other flags make no sense with --live.
func (l *liveFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"by", "order", "limit", "program", "format", "output", "show-sql", "timeout"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s has no meaning with --live", name)
		}
	}
	if l.every <= 0 {
		return usagef("--every %v is not positive", l.every)
	}
	return nil
}

// plainWidth is how wide the overview is where no terminal tells its width.
const plainWidth = 100

// run shows the overview of a run.
func (l *liveFlags) run(ctx context.Context, env *Env, where, run string) (err error) {
	from := &liveSource{env: env, where: where, run: run}
	if err := from.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	dumb := viewer.Variable(env.Environ, "TERM") == "dumb" || viewer.Variable(env.Environ, "TERM") == ""
	input, _ := env.Stdin.(*os.File)
	typed := env.Stdin == nil && isTerminal(os.Stdin) || input != nil && isTerminal(input)
	if !dumb && typed && isTerminal(env.Stdout) {
		return terminal.Show(ctx, from, terminal.Options{Input: env.Stdin, Output: env.Stdout, Environ: env.Environ, Every: l.every})
	}
	for {
		live, err := terminal.Print(ctx, env.Stdout, from, plainWidth)
		if err != nil || !live || !isTerminal(env.Stdout) {
			return err
		}
		if sleep(ctx, max(l.every, 5*time.Second)) != nil {
			return nil
		}
		fmt.Fprintln(env.Stdout)
	}
}

// liveSource asks the services of a run while they are there, and then what they stored.
type liveSource struct {
	env        *Env
	where, run string

	mu   sync.Mutex
	page *pageClient
}

// open finds who answers now.
func (l *liveSource) open(ctx context.Context) error {
	page, err := openPage(ctx, l.env, l.where, l.run)
	if err != nil {
		return err
	}
	l.page = page
	return nil
}

func (l *liveSource) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.page == nil {
		return nil
	}
	return l.page.close()
}

// ask asks who answered last, and else who answers now: services end with their run.
func (l *liveSource) ask(ctx context.Context, f func(p *pageClient) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.page != nil {
		err := f(l.page)
		if err == nil || ctx.Err() != nil || strings.HasPrefix(l.where, "http") {
			return err
		}
		_ = l.page.close() // it does not answer
		l.page = nil
	}
	if err := l.open(ctx); err != nil {
		return err
	}
	return f(l.page)
}

// lookPatience is how long a look may take.
const lookPatience = 30 * time.Second

// Look is how the run is now.
func (l *liveSource) Look(ctx context.Context, columns, rows int) (*terminal.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	p := new(terminal.Picture)
	return p, l.ask(ctx, func(page *pageClient) (err error) {
		if p.Overview, err = page.Overview(ctx, page.run, terminal.Issues); err != nil {
			return err
		}
		// Without these there is still something to see.
		if p.Heatmap, err = page.Heatmap(ctx, page.run, "own", columns, rows); err != nil {
			p.Heatmap = nil
		}
		if p.Status, err = page.Status(ctx); err != nil || p.Status.Run.Name != page.run {
			p.Status = nil
		}
		return nil
	})
}

// Evidence is all there is to say of one execution.
func (l *liveSource) Evidence(ctx context.Context, program int64, event string) (e *api.Evidence, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	err = l.ask(ctx, func(page *pageClient) (err error) {
		e, err = page.Evidence(ctx, page.run, program, event)
		return err
	})
	return e, err
}
