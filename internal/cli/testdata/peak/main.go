// Command peak runs a command line of chimbuko and prints the most memory that
// the process had, in bytes. What the system reports of a finished child would
// include the memory of the process that started it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/chimbuko/chimbuko/internal/cli"
)

func main() {
	code := cli.Run(context.Background(), &cli.Env{Stdout: io.Discard, Stderr: os.Stderr}, os.Args[1:])
	f, err := os.Open("/proc/self/status")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if kb, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			var n int64
			_, _ = fmt.Sscan(kb, &n)
			fmt.Println(n * 1024)
		}
	}
	os.Exit(code)
}
