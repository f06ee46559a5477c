package provenance

import "strings"

// Wait is what a function waits for, where waiting is what it is for: its time is
// that of others, and says little about itself.
type Wait uint8

// What functions wait for.
const (
	NoWait       Wait = iota
	PointToPoint      // for single other ranks: messages and requests
	Collective        // for all ranks of a group
	Device            // for a GPU
)

// WaitOf returns what a function waits for, by its name as traces have it: MPI_Wait(),
// PMPI_Wait, mpi_wait_, and those of CUDA, HIP, Level Zero, NCCL and RCCL, with
// whatever follows the first blank or bracket. What only starts something (MPI_Isend,
// MPI_Ibcast, MPI_Bcast_init, ncclAllReduce), what only looks (MPI_Test) and what
// starts and ends MPI does not wait.
func WaitOf(name string) Wait {
	if strings.HasPrefix(name, "MPI Collective Sync") { // TAU's own, before a collective call
		return Collective
	}
	if at := strings.IndexAny(name, "([ \t"); at >= 0 {
		name = name[:at]
	}
	name = strings.ToLower(name)
	if operation, ok := mpiOperation(name); ok {
		return mpiWaits[operation]
	}
	if kernel, ok := strings.CutPrefix(strings.Replace(name, "devkernel", "kernel", 1), "ncclkernel"); ok { // it runs until all have come
		if strings.HasPrefix(kernel, "_sendrecv") {
			return PointToPoint
		}
		return Collective
	}
	if strings.HasSuffix(name, "groupend") && (strings.HasPrefix(name, "nccl") || strings.HasPrefix(name, "rccl")) {
		return Collective
	}
	if strings.HasPrefix(name, "adios2") && (strings.HasSuffix(name, "beginstep") || strings.HasSuffix(name, "begin_step")) {
		return PointToPoint // for the writer's next step
	}
	for _, p := range []string{"cuda", "cu", "hip", "ze"} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return deviceWaits[version(rest)]
		}
	}
	return NoWait
}

// mpiOperation takes what languages and profiling add from the name of a function
// of MPI, which is in lower case.
func mpiOperation(name string) (string, bool) {
	name, ok := strings.CutPrefix(strings.TrimPrefix(name, "p"), "mpi_")
	name = strings.TrimRight(name, "_") // Fortran
	for _, suffix := range []string{"_f08ts", "_f08", "_f", "_c"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name, ok
}

// version takes the suffixes from a name that CUDA adds to distinguish versions:
// _v3020, _ptsz.
func version(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "_ptsz"), "_ptds")
	if at := strings.LastIndex(name, "_v"); at > 0 && strings.Trim(name[at+2:], "0123456789") == "" {
		name = name[:at]
	}
	return name
}

// mpiWaits are the operations of MPI that wait for others.
var mpiWaits = map[string]Wait{
	"wait": PointToPoint, "waitall": PointToPoint, "waitany": PointToPoint, "waitsome": PointToPoint,
	"recv": PointToPoint, "mrecv": PointToPoint, "probe": PointToPoint, "mprobe": PointToPoint,
	"sendrecv": PointToPoint, "sendrecv_replace": PointToPoint, "ssend": PointToPoint, "win_wait": PointToPoint,

	"barrier": Collective, "bcast": Collective, "win_fence": Collective,
	"reduce": Collective, "allreduce": Collective, "reduce_scatter": Collective, "reduce_scatter_block": Collective,
	"gather": Collective, "gatherv": Collective, "allgather": Collective, "allgatherv": Collective,
	"scatter": Collective, "scatterv": Collective, "scan": Collective, "exscan": Collective,
	"alltoall": Collective, "alltoallv": Collective, "alltoallw": Collective,
	"neighbor_allgather": Collective, "neighbor_allgatherv": Collective,
	"neighbor_alltoall": Collective, "neighbor_alltoallv": Collective, "neighbor_alltoallw": Collective,
}

// deviceWaits are the functions that wait for a GPU, without the prefix of their
// library.
var deviceWaits = map[string]Wait{
	"devicesynchronize": Device, "streamsynchronize": Device, "eventsynchronize": Device,
	"threadsynchronize": Device, "ctxsynchronize": Device,
	"commandqueuesynchronize": Device, "commandlisthostsynchronize": Device, "eventhostsynchronize": Device, "fencehostsynchronize": Device,
}
