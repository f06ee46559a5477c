package faultdisk_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
)

// letters is the content that the program of these tests writes.
var letters = bytes.Repeat([]byte("abcdefgh"), 512)

// program creates a directory and a file, writes twice, syncs in between, and renames it.
func program(dir string) error {
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(sub, "new"))
	if err != nil {
		return err
	}
	_, err = f.Write(letters)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		_, err = f.Write(letters)
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(sub, "old"))
	}
	return errors.Join(err, f.Close())
}

var operations = []string{
	"mkdir sub", "create sub/new", "write sub/new", "sync sub/new", "write sub/new", "rename sub/new",
}

// run runs program on a disk.
func run(t *testing.T, f faultdisk.Fault) (d *faultdisk.Disk, dir, output string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d = faultdisk.New(t, dir)
	output, _ = d.Self(t, f)
	return d, dir, output
}

// isProgram runs program if this process is the one on the disk.
func isProgram(t *testing.T) bool {
	t.Helper()
	dir := faultdisk.Dir()
	if dir != "" {
		if err := program(dir); err != nil {
			t.Error(err)
		}
	}
	return dir != ""
}

func TestOperationsAreCounted(t *testing.T) {
	if isProgram(t) {
		return
	}
	d, dir, output := run(t, faultdisk.Fault{})
	var got []string
	for _, op := range d.Ops() {
		got = append(got, op.String())
	}
	if !slices.Equal(got, operations) {
		t.Errorf("operations %q, want %q\n%s", got, operations, output)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "sub", "old")); err != nil || len(b) != 2*len(letters) {
		t.Errorf("the file has %d bytes, error %v", len(b), err)
	}
}

func TestEachOperationFails(t *testing.T) {
	if isProgram(t) {
		return
	}
	for i, op := range operations {
		want := syscall.ENOSPC
		if strings.HasPrefix(op, "sync") {
			want = syscall.EIO
		}
		d, _, output := run(t, faultdisk.Fail(i+1))
		if !strings.Contains(output, want.Error()) || d.Failures() != "["+op+"]" {
			t.Errorf("%s: failed %s:\n%s", op, d.Failures(), output)
		}
	}
}

func TestShortWriteLeavesHalf(t *testing.T) {
	if isProgram(t) {
		return
	}
	_, dir, output := run(t, faultdisk.FailShort(3))
	b, err := os.ReadFile(filepath.Join(dir, "sub", "new"))
	if err != nil || !bytes.Equal(b, letters[:len(letters)/2]) || !strings.Contains(output, syscall.ENOSPC.Error()) {
		t.Errorf("the file has %d bytes, error %v:\n%s", len(b), err, output)
	}
}

func TestStopKillsBeforeOperation(t *testing.T) {
	if isProgram(t) {
		return
	}
	_, dir, output := run(t, faultdisk.Stop(6))
	b, err := os.ReadFile(filepath.Join(dir, "sub", "new"))
	if err != nil || len(b) != 2*len(letters) || output != "" {
		t.Errorf("the file has %d bytes, error %v:\n%s", len(b), err, output)
	}
}

func TestPowerLossKeepsSyncedData(t *testing.T) {
	if isProgram(t) {
		return
	}
	for _, order := range []faultdisk.Order{faultdisk.Ordered, faultdisk.Journal, faultdisk.Arbitrary} {
		states := map[string]bool{}
		for seed := range uint64(32) {
			d, dir, _ := run(t, faultdisk.Fault{})
			if err := d.LosePower(seed, order); err != nil {
				t.Fatal(err)
			}
			var state []string
			for _, name := range []string{"new", "old"} {
				b, err := os.ReadFile(filepath.Join(dir, "sub", name))
				if err == nil && bytes.HasPrefix(append(b, letters...), letters) {
					state = append(state, fmt.Sprint(name, " ", len(b)))
				}
			}
			states[strings.Join(state, ", ")] = true
		}
		for state := range states {
			ok := strings.HasPrefix(state, "new ") || strings.HasPrefix(state, "old ")
			if order != faultdisk.Arbitrary && (!ok || strings.Contains(state, ",")) {
				t.Errorf("a journal leaves %q", state)
			}
		}
		for _, want := range []string{"new 4096", "old 4096", "new 8192", "old 8192"} {
			if !states[want] {
				t.Errorf("order %v: %q is missing in %v", order, want, states)
			}
		}
		if order == faultdisk.Arbitrary && !states[""] {
			t.Errorf("the name was never lost: %v", states)
		}
	}
}
