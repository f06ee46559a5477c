// Command peak runs a command line of chimbuko and prints the peak memory of the process in bytes. The system's report about
// a finished child would include the memory of the process that started it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/chimbuko/chimbuko/internal/cli"
)

func main() {
	code := cli.Run(context.Background(), &cli.Env{Stdout: io.Discard, Stderr: os.Stderr, Version: "test", Commit: "none"}, os.Args[1:])
	fmt.Println(status("VmHWM:"))
	os.Exit(code)
}

// status returns a field of /proc/self/status in bytes.
func status(field string) (bytes int64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, rest, _ := strings.Cut(string(b), field)
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes * 1024
}
