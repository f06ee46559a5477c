package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/chimbuko/chimbuko/internal/online/children"
)

// startPage starts the process that shows the run when its services have ended: at
// the same address, so that pages which are open go on.
func (d *demo) startPage(ctx context.Context) (err error) {
	d.page, err = d.children.Start(ctx, "view", "the process of the page", "view", d.dir.run(), "--http", d.flags.web)
	if err != nil {
		return err
	}
	return d.until(ctx, d.page, "show the page", func() (bool, error) {
		text, err := os.ReadFile(d.page.Log)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "http") && strings.HasSuffix(line, "\n") {
				d.address = strings.TrimSpace(line)
			}
		}
		return d.address != "", err
	})
}

// stay keeps the page until the demo is interrupted, which is its good end.
func (d *demo) stay(ctx context.Context) error {
	d.view.address("The page stays until Ctrl-C:", d.address, d.dir.run())
	select {
	case <-ctx.Done():
	case <-d.page.Ended():
	}
	if failed, ok := errors.AsType[*children.Failure](context.Cause(ctx)); ok {
		return failed
	}
	return nil
}

// isInteractive reports whether a person sits at a terminal, who can end what waits.
func (env *Env) isInteractive() bool {
	in, ok := env.Stdin.(*os.File)
	if env.Stdin == nil {
		in, ok = os.Stdin, true
	}
	if !ok || !isTerminal(in) || !isTerminal(env.Stdout) {
		return false
	}
	info, err := in.Stat()
	null, nullErr := os.Stat(os.DevNull) // a device, too
	return err == nil && (nullErr != nil || !os.SameFile(info, null))
}
