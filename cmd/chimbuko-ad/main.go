// Command chimbuko-ad is the analyzer of chimbuko alone, for nodes of clusters: it analyzes traces
// while a program writes them, and sends what it finds to the services of chimbuko serve. It needs
// neither libraries nor a database.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/chimbuko/chimbuko/internal/base/version"
	"github.com/chimbuko/chimbuko/internal/cli/ad"
)

// Set when the program is built.
var commit = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := ad.Main(ctx, version.Number+" ("+commit+")")
	stop()
	os.Exit(code)
}
