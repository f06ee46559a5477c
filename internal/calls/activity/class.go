// Package activity sums up the activities of ranks over time: their own code, communication, work of GPUs, input and output,
// and waiting threads, by rank and bin of time; the messages between ranks; and readings of counters. A timeline of an entire
// run can be drawn from these sums without its trace.
//
// A Sketch has limited size, and merging sketches gives the same result in any order and grouping. Bins are aligned to powers
// of two of ticks; a longer run, or one with more ranks, has wider bins. The package is pure. A Sketch is not safe for
// concurrent use.
package activity

import (
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Class is a kind of activity.
type Class uint8

// The classes.
const (
	None Class = iota // no call, or not counted
	Own               // the program's own code
	MPI               // communication between ranks
	GPU               // kernels, copies, and calls of the host that start them or wait for them
	IO                // files
	Idle              // threads that wait for other threads
	numClasses
)

// Classes is the number of classes, including None.
const Classes = int(numClasses)

var classNames = [...]string{"none", "own", "mpi", "gpu", "io", "idle"}

// String returns the name of a class in answers.
func (c Class) String() string { return classNames[min(c, numClasses-1)] }

// Of returns the class of a function by its name.
func Of(name string) Class {
	switch Group(name, false) {
	case groupMPI:
		return MPI
	case groupGPU:
		return GPU
	case groupIO:
		return IO
	}
	if strings.HasPrefix(name, "OpenMP_Sync_Region") || strings.HasPrefix(name, "OpenMP_Wait") { // by TAU
		return Idle
	}
	return Own
}

// Place is where a thread runs: on the host or on a device.
type Place uint8

// The places.
const (
	Host Place = iota
	Device
)

// onDevice returns the class of a call on a stream of a GPU.
func onDevice(name string) Class {
	switch {
	case strings.HasPrefix(name, trace.WholeThread): // even while the stream is idle
		return None
	case Of(name) == MPI: // such as kernels of NCCL
		return MPI
	}
	return GPU
}

// Groups of functions, which determine their colors.
const (
	groupMPI  = "mpi"
	groupGPU  = "gpu"
	groupIO   = "io"
	GroupUser = "user" // the program's own code
)

// groupPrefixes are prefixes of functions of libraries, in lower case. The first match counts. If upper is true, an
// upper-case letter must follow: cuLaunchKernel, not cumulate.
var groupPrefixes = []struct {
	prefix string
	upper  bool
	group  string
}{
	{"mpi_", false, groupMPI},
	{"pmpi_", false, groupMPI},
	{"mpi collective sync", false, groupMPI},
	{"mpi-io", false, groupIO},
	{"nccl", false, groupMPI},
	{"rccl", false, groupMPI},
	{"shmem_", false, groupMPI},
	{"cuda", false, groupGPU},
	{"hip", true, groupGPU},
	{"cu", true, groupGPU},
	{"ze", true, groupGPU},
	{"roctx", false, groupGPU},
	{"h5", false, groupIO},
	{"nc_", false, groupIO},
	{"ncmpi_", false, groupIO},
	{"adios", false, groupIO},
	{"posix_fallocate", false, groupIO},
}

// ioNames are functions of the operating system and of C that read and write files.
var ioNames = func() map[string]bool {
	names := make(map[string]bool)
	for name := range strings.FieldsSeq(`open open64 openat openat64 creat close read write pread pwrite pread64
		pwrite64 readv writev preadv pwritev
		fopen fopen64 fdopen freopen fclose fread fwrite fflush fseek fseeko ftell fgets fputs fprintf fscanf lseek lseek64 fsync fdatasync
		truncate ftruncate rename unlink stat fstat mmap munmap aio_read aio_write`) {
		names[name] = true
	}
	return names
}()

// Group returns the group of a function by its name. onGPU is true if the function ran on a GPU.
func Group(name string, onGPU bool) string {
	if onGPU {
		return groupGPU
	}
	name = strings.TrimPrefix(name, "[") // TAU puts some names in brackets
	if at := strings.IndexAny(name, "([{<"); at > 0 {
		name = name[:at]
	}
	name = strings.TrimSpace(name)
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, "mpi_file_") || strings.HasPrefix(lower, "pmpi_file_") {
		return groupIO
	}
	for _, p := range groupPrefixes {
		if !strings.HasPrefix(lower, p.prefix) {
			continue
		}
		if rest := name[len(p.prefix):]; p.upper && (rest == "" || rest[0] < 'A' || rest[0] > 'Z') {
			continue
		}
		return p.group
	}
	if ioNames[lower] {
		return groupIO
	}
	return GroupUser
}
