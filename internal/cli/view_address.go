package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/chimbuko/chimbuko/internal/show/viewer"
)

// printAddress prints the address of a page on a separate line, for people and programs,
// and how to reach it from another machine.
func printAddress(env *Env, address, token, fragment string) {
	fmt.Fprintln(env.Stdout, viewer.WithToken(address, token)+fragment)
	host, _ := os.Hostname() // only shown
	if line := viewer.Tunnel(env.Environ, host, address); line != "" {
		fmt.Fprintf(env.Stderr, "chimbuko: to open it from your own machine, run: %s\n", line)
	}
}

// printAddressOn prints the address of a page on another machine.
func printAddressOn(env *Env, host, address, token, fragment string) error {
	line, err := viewer.TunnelTo(host, address)
	if err == nil {
		fmt.Fprintln(env.Stdout, viewer.WithToken(address, token)+fragment)
		fmt.Fprintf(env.Stderr, "chimbuko: to open it, run: %s\n", line)
	}
	return err
}

// openBrowser opens an address in the browser of this machine, or prints why it cannot. The
// caller must call remove after the browser has opened it.
func openBrowser(ctx context.Context, env *Env, address string) (remove func()) {
	remove, err := viewer.OpenBrowser(ctx, env.Environ, address)
	if err != nil {
		fmt.Fprintf(env.Stderr, "chimbuko: cannot open a browser: %v (open the address yourself)\n", err)
	}
	return remove
}
