package nccl_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/tally"
	"github.com/chimbuko/chimbuko/internal/source/nccl"
	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedLogs reads mutations of a log. Each line is an operation, or is counted as skipped or unreadable.
func TestDamagedLogs(t *testing.T) {
	var text strings.Builder
	for i := range 60 {
		at := int64(i) * 1000
		text.WriteString(op{comm: "0xa", rank: 1, size: 4, name: "AllReduce", sn: i, bytes: 4096, start: at + 1, took: 500, dumped: at + 900}.line("n1", 7))
		text.WriteString(op{comm: "0xb", size: 2, name: "Send", sn: i, bytes: 64, start: at + 600, took: 50, dumped: at + 900, message: true}.line("n1", 7))
		text.WriteString(op{comm: "0xb", size: 2, name: "AllGather", sn: i, bytes: 128, took: 70, dumped: at + 990}.line("n1", 7))
	}
	text.WriteString(op{comm: "0xb", size: 2, future: true}.line("n1", 7))
	for name, log := range map[string]string{"untimed": plain + plain, "verbose": verbose + verbose, "mixed": text.String()} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.log")
			damage.Run(t, damage.Format{Files: damage.Files{"a.log": []byte(log)}, Sample: 200, Read: func(files damage.Files) error {
				if err := files.Write(dir); err != nil {
					return err
				}
				return checkLog(t, path, string(files["a.log"]))
			}})
		})
	}
}

// checkLog reads a log and compares the numbers of lines.
func checkLog(t *testing.T, path, text string) error {
	f, err := nccl.ReadHead(path)
	if err != nil || f == nil {
		return nil //nolint:nilerr // not recognized any more
	}
	var job nccl.Job
	job.Add([]*nccl.File{f})
	operations := int64(0)
	var counts tally.Tally
	for i := range f.Ranks {
		all, err := calls(t, f.Steps(i, nccl.Options{Tally: &counts}))
		operations += int64(strings.Count(all, "\n") - strings.Count(all, " "+nccl.Between+"\n"))
		if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), path+": line ") {
			return fmt.Errorf("the error names no line: %w", err)
		}
	}
	lines := int64(0)
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	skipped, unreadable := counts.Count(tally.RecordsSkipped), counts.Count(tally.PartUnreadable)
	if len(f.Ranks) == 1 && operations+skipped+unreadable != lines {
		return fmt.Errorf("%d operations, %d skipped and %d unreadable of %d lines", operations, skipped, unreadable, lines)
	}
	return nil
}
