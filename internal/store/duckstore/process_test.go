package duckstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/duckstore"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/storetest"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// Environment of the processes that tests start, which run the test binary.
const (
	roleVar  = "DUCKSTORE_TEST_ROLE" // one of roles
	fileVar  = "DUCKSTORE_TEST_FILE"
	firstVar = "DUCKSTORE_TEST_FIRST" // number of the first batch
)

// batchSize is the number of records in a batch of those processes.
const batchSize = 25

var roles = map[string]func(ctx context.Context, path string) error{"write": writeBatches, "hold": holdOpen, "fill": fillDisk}

func TestMain(m *testing.M) {
	if role, ok := roles[os.Getenv(roleVar)]; ok {
		if err := role(context.Background(), os.Getenv(fileVar)); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process starts a process with a role.
func process(t *testing.T, role, path string, first int) (cmd *exec.Cmd, stdin io.WriteCloser, lines *bufio.Scanner) {
	t.Helper()
	tracetest.SkipShort(t, "starts processes")
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, fileVar+"="+path, fmt.Sprintf("%s=%d", firstVar, first))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdin, bufio.NewScanner(stdout)
}

// batches yields an endless sequence of batches, beginning with first.
func batches(first int) func(yield func(int, *provdb.Batch) bool) {
	return func(yield func(int, *provdb.Batch) bool) {
		i, batch := 0, []*provenance.Record{}
		for r := range storetest.Stream(1<<30, 11) {
			if batch = append(batch, r); len(batch) == batchSize {
				if i >= first && !yield(i, &provdb.Batch{
					Anomalies: batch,
					Metadata:  []provdb.StepMetadata{{Step: i, Facts: []provenance.Metadata{{Descr: "batch"}}}},
				}) {
					return
				}
				i, batch = i+1, nil
			}
		}
	}
}

// openOrCreate opens the store, and creates its run if there is none.
func openOrCreate(ctx context.Context, path string) (*duckstore.Store, provdb.RunID, error) {
	s, err := duckstore.Open(ctx, path, duckstore.Options{})
	if err != nil {
		return nil, 0, err
	}
	id, err := s.CreateRun(ctx, provdb.Run{Name: "run", State: provdb.Running, Started: time.Unix(0, 0)})
	if errors.Is(err, provdb.ErrRunExists) {
		id, err = 1, nil
	}
	return s, id, err
}

// writeBatches writes batches forever, reports each, and reopens the file now and then.
func writeBatches(ctx context.Context, path string) error {
	first, err := strconv.Atoi(os.Getenv(firstVar))
	if err != nil {
		return err
	}
	s, id, err := openOrCreate(ctx, path)
	if err != nil {
		return err
	}
	for i, batch := range batches(first) {
		if err := s.Write(ctx, id, batch); err != nil {
			return err
		}
		fmt.Println("stored", i)
		if i%5 == 4 {
			if err := s.Close(); err != nil {
				return err
			}
			if s, id, err = openOrCreate(ctx, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdOpen keeps the file open until the end of its input.
func holdOpen(ctx context.Context, path string) error {
	s, err := duckstore.Open(ctx, path, duckstore.Options{ReadOnly: os.Getenv(firstVar) == "1"})
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Close())
}

// fillDisk writes until it reaches the file size limit of the process, raises the limit and
// writes the same batch again.
func fillDisk(ctx context.Context, path string) error {
	s, id, err := openOrCreate(ctx, path)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	small := syscall.Rlimit{Cur: 1 << 20, Max: limit.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		return err
	}
	for i, batch := range batches(0) {
		if err := s.Write(ctx, id, batch); err != nil {
			fmt.Println("full:", strings.ReplaceAll(err.Error(), "\n", " "))
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				return err
			}
			if err := s.Write(ctx, id, batch); err != nil {
				return err
			}
			fmt.Println("stored", i)
			break
		}
		fmt.Println("stored", i)
	}
	return s.Close()
}

// countIntact counts the batches in the store. Each must be complete, and those below stored
// must exist.
func countIntact(t *testing.T, s *duckstore.Store, stored int) (batchesThere int) {
	t.Helper()
	rows, err := query(s, t, "SELECT event_id FROM anomalies")
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, row := range rows {
		there[row[0].(string)] = true
	}
	if rows, err = query(s, t, "SELECT count(*) FROM metadata"); err != nil {
		t.Fatal(err)
	}
	for i, batch := range batches(0) {
		found := 0
		for _, r := range batch.Anomalies {
			if there[r.EventID] {
				found++
			}
		}
		switch {
		case found != 0 && found != batchSize, found == 0 && i < stored:
			t.Fatalf("got %d records of batch %d; %d batches were stored", found, i, stored)
		case found == batchSize:
			batchesThere++
			continue
		}
		break
	}
	if got := rows[0][0].(int64); got != int64(batchesThere) || len(there) != batchesThere*batchSize {
		t.Errorf("%d facts and %d records, want those of %d batches", got, len(there), batchesThere)
	}
	if docs := documents(t, s); len(docs) != len(there) {
		t.Errorf("%d documents of %d records", len(docs), len(there))
	}
	return batchesThere
}

func TestStoredBatchesSurviveKill(t *testing.T) {
	t.Parallel()
	path := file(t)
	end := time.Now().Add(10 * time.Second)
	stored := 0
	for round := 0; round < 6 && (round < 3 || time.Now().Before(end)); round++ {
		cmd, _, lines := process(t, "write", path, stored)
		first := true
		for lines.Scan() {
			n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "stored "))
			if err != nil {
				t.Fatal(lines.Text())
			}
			stored = n + 1
			if first {
				first = false
				time.AfterFunc(time.Duration(round*31)*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
		}
		if err := cmd.Wait(); first || cmd.ProcessState.Exited() {
			t.Fatalf("round %d: the process was not killed: %v", round, err)
		}
		var s *duckstore.Store
		for _, readOnly := range []bool{true, false} { // first with the remaining log
			if readOnly && round%2 == 1 {
				continue
			}
			s = open(t, path, readOnly)
			there := countIntact(t, s, stored)
			closeStore(t, s)
			stored = there
		}
	}
	t.Logf("%d batches", stored)
}

func TestFileInUseIsAnErrorForSecondProcess(t *testing.T) {
	t.Parallel()
	path := file(t)
	closeStore(t, open(t, path, false))
	cmd, stdin, lines := process(t, "hold", path, 0)
	if !lines.Scan() || lines.Text() != "open" {
		t.Fatal(lines.Text())
	}
	for _, readOnly := range []bool{false, true} {
		_, err := duckstore.Open(t.Context(), path, duckstore.Options{ReadOnly: readOnly})
		if !errors.Is(err, provdb.ErrInUse) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "wait for it to end") {
			t.Errorf("got error %v, want that %s is in use", err, path)
		}
	}
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, open(t, path, false))
}

func TestSeveralProcessesReadFile(t *testing.T) {
	t.Parallel()
	path := file(t)
	closeStore(t, open(t, path, false))
	cmd, stdin, lines := process(t, "hold", path, 1)
	if !lines.Scan() || lines.Text() != "open" {
		t.Fatal(lines.Text())
	}
	s := open(t, path, true)
	if rows, err := query(s, t, "SELECT count(*) FROM runs"); err != nil || fmt.Sprint(rows) != "[[0]]" {
		t.Errorf("got %v, error %v", rows, err)
	}
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
}

func TestFullDiskIsReportedAndLosesNothing(t *testing.T) {
	t.Parallel()
	path := file(t)
	cmd, _, lines := process(t, "fill", path, 0)
	stored, full := 0, 0
	for lines.Scan() {
		n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "stored "))
		if err == nil {
			stored = n + 1
			continue
		}
		if full++; !strings.Contains(lines.Text(), "the disk is full or cannot be written") || !strings.Contains(lines.Text(), path) {
			t.Errorf("got %s", lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil || stored == 0 || full != 1 {
		t.Fatalf("%d batches were stored, %d were not: %v", stored, full, err)
	}
	s := open(t, path, false)
	countIntact(t, s, stored)
	t.Logf("%d batches", stored)
}
