package flame

import "strings"

// The groups of functions, for their colors.
const (
	groupMPI  = "mpi"
	groupGPU  = "gpu"
	groupIO   = "io"
	groupUser = "user"
)

// groupPrefixes are prefixes of functions of libraries, in lower case. The first match
// counts. upper requires an upper-case letter after it: cuLaunchKernel, not cumulate.
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

// Group returns the group of a function by its name; onGPU reports that it ran on a GPU.
func Group(name string, onGPU bool) string {
	if onGPU {
		return groupGPU
	}
	name = strings.TrimPrefix(name, "[") // TAU puts some names into brackets
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
	return groupUser
}
