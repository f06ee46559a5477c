// Command chimbuko finds the few function executions of a parallel program
// that went wrong, and keeps them with all that is needed to explain them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/chimbuko/chimbuko/internal/base/version"
	"github.com/chimbuko/chimbuko/internal/cli"
)

// Set when the program is built.
var commit = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	env := &cli.Env{Stdout: os.Stdout, Stderr: os.Stderr, Version: version.Number, Commit: commit, Environ: os.Environ()}
	code := cli.Run(ctx, env, os.Args[1:])
	stop()
	os.Exit(code)
}
