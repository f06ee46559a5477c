package provenance

import "strings"

// Wait classifies functions whose purpose is to wait. Their time depends on others.
type Wait uint8

// Classes of waiting functions.
const (
	NoWait       Wait = iota
	PointToPoint      // for single other ranks: messages and requests
	Collective        // for all ranks of a group
	Device            // for a GPU
)

// WaitOf classifies a function by its name in traces, up to the first blank or parenthesis:
// MPI_Wait(), PMPI_Wait, mpi_wait_, functions of CUDA, HIP, Level Zero, NCCL and RCCL, and
// operations of PyTorch (gloo:all_reduce) and Megatron (grads-reduce-scatter).
// Functions that only start an operation (MPI_Isend, MPI_Ibcast, MPI_Bcast_init,
// ncclAllReduce), that only test (MPI_Test), and that start and end MPI do not wait. MPI_Send
// waits for the receiver of a message that does not fit into buffers.
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
	if backend, operation, ok := strings.Cut(name, ":"); ok && backends[backend] {
		return transferOf(operation)
	}
	if at := strings.IndexByte(name, '-'); at > 0 { // not a name of C, C++ or Fortran
		return transferOf(name[at+1:])
	}
	// NCCL kernels run until all ranks have arrived.
	if kernel, ok := strings.CutPrefix(strings.Replace(name, "devkernel", "kernel", 1), "ncclkernel"); ok {
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

// backends are those of PyTorch whose operations are annotated. The thread that runs them waits
// for other ranks.
var backends = map[string]bool{"gloo": true, "mpi": true, "ucc": true}

// transferOf classifies an operation between ranks by its words: all-reduce, reduce_scatter, recv.
func transferOf(operation string) Wait {
	switch operation {
	case "send", "recv", "recv_any_source", "send-recv":
		return PointToPoint
	}
	operation = strings.ReplaceAll(strings.ReplaceAll(operation, "_", ""), "-", "")
	for _, name := range []string{"reduce", "scatter", "gather", "alltoall", "broadcast", "barrier"} {
		if strings.HasSuffix(operation, name) {
			return Collective
		}
	}
	return NoWait
}

// Useful reports whether the time of a function is work: it does not wait, and is not a function of
// MPI, not even to start or end it. Names are those of WaitOf.
func Useful(name string) bool {
	if WaitOf(name) != NoWait {
		return false
	}
	if at := strings.IndexAny(name, "([ \t"); at >= 0 {
		name = name[:at]
	}
	_, mpi := mpiOperation(strings.ToLower(name))
	return !mpi
}

// mpiOperation returns the operation of an MPI function, whose name is in lower case, without
// the prefixes and suffixes of languages and profiling.
func mpiOperation(name string) (string, bool) {
	name, ok := strings.CutPrefix(strings.TrimPrefix(name, "p"), "mpi_")
	name = strings.TrimRight(name, "_") // Fortran
	for _, suffix := range []string{"_f08ts", "_f08", "_f", "_c"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name, ok
}

// version removes the version suffixes of CUDA from a name: _v3020, _ptsz.
func version(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "_ptsz"), "_ptds")
	if at := strings.LastIndex(name, "_v"); at > 0 && strings.Trim(name[at+2:], "0123456789") == "" {
		name = name[:at]
	}
	return name
}

// mpiWaits are the operations of MPI that wait for other ranks.
var mpiWaits = map[string]Wait{
	"wait": PointToPoint, "waitall": PointToPoint, "waitany": PointToPoint, "waitsome": PointToPoint,
	"recv": PointToPoint, "mrecv": PointToPoint, "probe": PointToPoint, "mprobe": PointToPoint,
	"sendrecv": PointToPoint, "sendrecv_replace": PointToPoint, "send": PointToPoint, "ssend": PointToPoint,
	"rsend": PointToPoint, "win_wait": PointToPoint,

	"barrier": Collective, "bcast": Collective, "win_fence": Collective,
	"reduce": Collective, "allreduce": Collective, "reduce_scatter": Collective, "reduce_scatter_block": Collective,
	"gather": Collective, "gatherv": Collective, "allgather": Collective, "allgatherv": Collective,
	"scatter": Collective, "scatterv": Collective, "scan": Collective, "exscan": Collective,
	"alltoall": Collective, "alltoallv": Collective, "alltoallw": Collective,
	"neighbor_allgather": Collective, "neighbor_allgatherv": Collective,
	"neighbor_alltoall": Collective, "neighbor_alltoallv": Collective, "neighbor_alltoallw": Collective,
}

// deviceWaits are the functions that wait for a GPU, without the prefix of the library.
var deviceWaits = map[string]Wait{
	"devicesynchronize": Device, "streamsynchronize": Device, "eventsynchronize": Device,
	"threadsynchronize": Device, "ctxsynchronize": Device,
	"commandqueuesynchronize": Device, "commandlisthostsynchronize": Device, "eventhostsynchronize": Device, "fencehostsynchronize": Device,
}
