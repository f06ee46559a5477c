// Package faultdisk runs programs on a disk that fails: the n-th change of a file below a
// directory gets an error, or everything stops there as if the power had failed. It sees the
// system calls of all processes, so it also covers files that libraries write.
//
// It needs Linux 5.19 or newer on amd64 or arm64. Elsewhere tests are skipped.
package faultdisk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Fault is what happens to the operations of a program. The zero value changes nothing.
type Fault struct {
	// From and To bound the operations that fail, counted from 1 and without To. Those that
	// need space fail with ENOSPC, others with EIO.
	From, To int
	// Short lets a write at From write half of its data.
	Short bool
	// Stop is the number of the operation before which all processes are killed; 0 kills none.
	Stop int
	// Power lets the disk lose power at Stop, with Seed, in Torture.
	Power bool
	Seed  uint64
}

// Fail returns the fault of operation n alone.
func Fail(n int) Fault { return Fault{From: n, To: n + 1} }

// FailShort returns the fault that writes half of the data at operation n and fails at the next.
func FailShort(n int) Fault { return Fault{From: n, To: n + 2, Short: true} }

// Full returns a disk that is full at operation n and has room again after count operations.
func Full(n, count int) Fault { return Fault{From: n, To: n + count} }

// Stop returns the fault that kills all processes before operation n.
func Stop(n int) Fault { return Fault{Stop: n} }

// Op is an operation that changes a file or directory.
type Op struct {
	Name string // create, write, sync, rename, link, truncate, allocate, remove, mkdir
	Path string // relative to the directory
}

func (o Op) String() string { return o.Name + " " + o.Path }

// Disk is a directory whose changes are supervised.
type Disk struct {
	dir  string
	skip func(path string) bool

	mu    sync.Mutex
	fault Fault
	ops   []Op // of the last Run
	hit   []Op // that failed, or before which the program was stopped
	state model
}

// New returns a disk for the programs that write below dir, which may not exist yet. It does
// not see files whose relative paths are in or below those that skip names.
func New(tb testing.TB, dir string, skip ...string) *Disk {
	tb.Helper()
	real, err := filepath.EvalSymlinks(filepath.Dir(dir)) // as the kernel names it
	if err != nil {
		tb.Fatal(err)
	}
	return &Disk{dir: filepath.Join(real, filepath.Base(dir)), skip: func(path string) bool {
		for _, s := range skip {
			if path == s || strings.HasPrefix(path, s+"/") {
				return true
			}
		}
		return false
	}}
}

// Ops returns the operations of the last Run.
func (d *Disk) Ops() []Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Hit returns the operations of the last Run that failed or at which it was stopped.
func (d *Disk) Hit() []Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hit
}

// dirEnv has the directory for a test that runs as the program on a disk.
const dirEnv = "FAULTDISK_DIR"

// Dir returns the directory in which this test is the program that Self runs, or "".
func Dir() string { return os.Getenv(dirEnv) }

// Self runs the current test, not its subtest, as the program, in its own process, where Dir returns dir.
func (d *Disk) Self(tb testing.TB, f Fault) (output string, code int) {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	name, _, _ := strings.Cut(tb.Name(), "/")
	return d.Run(tb, f, []string{dirEnv + "=" + d.dir}, self, "-test.run=^"+name+"$", "-test.count=1")
}

// Long skips a test of programs whose operations differ from run to run, unless FAULTDISK_SAMPLE is set.
func Long(tb testing.TB) {
	tb.Helper()
	if os.Getenv("FAULTDISK_SAMPLE") == "" && Dir() == "" {
		tb.Skip("SKIPPED: failing disks of libraries and whole runs are tested by make disk-faults, or with FAULTDISK_SAMPLE=4")
	}
}

// Sample returns about size numbers from 1 to count, one in each part of equal length, or as many
// as many as the variable FAULTDISK_SAMPLE states, or all. The numbers are always the same.
func Sample(count, size int) (all []int) {
	switch text := os.Getenv("FAULTDISK_SAMPLE"); text {
	case "":
	case "all":
		size = count
	default:
		if n, err := strconv.Atoi(text); err == nil {
			size = n
		}
	}
	size = min(size, count)
	random := rand.New(rand.NewPCG(1, uint64(count)))
	for i := range size {
		from, to := i*count/size, (i+1)*count/size
		all = append(all, 1+from+random.IntN(to-from))
	}
	return all
}

// Aftermath is the state that a program left.
type Aftermath struct {
	Dir    string
	Output string
	Power  bool // the disk lost power
}

// Torture runs the current test as a program with each kind of fault at a sample of its operations, of
// about size of them, and calls check after each run, also after one without a fault. After a loss of
// power, changes are on the disk in the given order. If it is Ordered, writes are never short.
func Torture(t *testing.T, size int, order Order, check func(*testing.T, Aftermath)) {
	t.Helper()
	try := func(t *testing.T, f Fault) *Disk {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "disk")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		d := New(t, dir)
		output, code := d.Self(t, f)
		if f == (Fault{}) && code != 0 {
			t.Fatalf("without a fault: exit code %d:\n%s", code, output)
		}
		if f.Stop > 0 && f.Power {
			if err := d.LosePower(f.Seed, order); err != nil {
				t.Fatal(err)
			}
		}
		check(t, Aftermath{dir, output, f.Power})
		if t.Failed() {
			t.Logf("fault at %s; output of the program:\n%s", d.Hit(), output)
		}
		return d
	}
	ops := try(t, Fault{}).Ops()
	t.Logf("%d operations", len(ops))
	for _, n := range Sample(len(ops), size) {
		for kind, f := range map[string]Fault{
			"fails": Fail(n), "short": FailShort(n), "full": Full(n, len(ops)), "killed": Stop(n),
			"power": {Stop: n, Power: true}, "power at random": {Stop: n, Power: true, Seed: uint64(n)},
		} {
			if kind == "short" && (ops[n-1].Name != "write" || order == Ordered) {
				continue
			}
			t.Run(fmt.Sprintf("%d %s", n, kind), func(t *testing.T) {
				t.Parallel()
				try(t, f)
			})
		}
	}
}

// Failures describes the operations that failed, for messages of tests.
func (d *Disk) Failures() string { return fmt.Sprint(d.Hit()) }
