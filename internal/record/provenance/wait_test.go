package provenance_test

import (
	"testing"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

func TestWaitingFunctionsAreRecognizedByName(t *testing.T) {
	f := func(want provenance.Wait, names ...string) {
		t.Helper()
		for _, name := range names {
			if got := provenance.WaitOf(name); got != want {
				t.Errorf("%q: got %d, want %d", name, got, want)
			}
		}
	}
	f(
		provenance.PointToPoint, "MPI_Wait()", "MPI_Waitall()", "MPI_Waitany", "MPI_Waitsome()", "MPI_Recv() [{x.c} {1,2}]",
		"MPI_Recv [THROTTLED]",
		"MPI_Mrecv()", "MPI_Probe()", "MPI_Mprobe()", "MPI_Sendrecv()", "MPI_Sendrecv_replace()", "MPI_Send()", "MPI_Ssend()", "PMPI_Wait()", "mpi_waitall_",
		"MPI_WAIT",
		"gloo:recv", "forward-send", "backward-recv [PP rank 3]", "pmpi_recv__", "mpi_recv_f08_", "mpi_recv_f08ts_", "MPI_Recv_c()", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
	)
	f(
		provenance.Collective, "MPI_Barrier()", "MPI_Bcast()", "MPI_Reduce()", "MPI_Allreduce()", "MPI_Reduce_scatter()",
		"MPI_Reduce_scatter_block()",
		"MPI_Gather()", "MPI_Gatherv()", "MPI_Allgather()", "MPI_Allgatherv()", "MPI_Scatter()", "MPI_Scatterv()", "MPI_Alltoall()",
		"MPI_Alltoallv()",
		"MPI_Alltoallw()", "MPI_Scan()", "MPI_Exscan()", "MPI_Win_fence()", "MPI_Neighbor_allgather()", "MPI_Neighbor_alltoallw()",
		"PMPI_Allreduce",
		"mpi_allreduce_", "MPI_Allreduce_c", "MPI Collective Sync", "MPI Collective Sync [{x}]", "ncclGroupEnd()", "ncclGroupEnd", "rcclGroupEnd",
		"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "ncclDevKernel_AllGather_RING_LL",
		"gloo:all_reduce", "gloo:all_reduce [[2896640]]", "ucc:barrier", "grads-reduce-scatter", "params-all-gather [PP rank 1]",
		"layernorm-grads-all-reduce",
	)
	f(
		provenance.Device, "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize()", "cudaThreadSynchronize",
		"cuCtxSynchronize",
		"cuStreamSynchronize_ptsz", "cudaDeviceSynchronize_v3020", "hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize [{x}]",
		"zeCommandQueueSynchronize", "zeEventHostSynchronize",
	)
	f(
		provenance.NoWait, "nccl:all_reduce", "gloo:", "x:all_reduce", "forward-compute", "-send", "optimizer-clip-main-grad", "", "main", "MPI", "MPI_", "MPI_Init()", "MPI_Init_thread()", "MPI_Finalize()", "MPI_Isend()",
		"MPI_Irecv()", "MPI_Test()",
		"MPI_Iprobe()", "MPI_Ibarrier()", "MPI_Ibcast()", "MPI_Iallreduce()", "MPI_Bcast_init()", "MPI_Start()", "MPI_Reduce_local()",
		"MPI_Comm_rank()",
		"MPI_Waiter()", "my_MPI_Wait()", "wait", "wait()", "recv", "[CONTEXT] MPI_Wait()", "MPI Collective", "ncclAllReduce", "ncclGroupStart",
		"groupend",
		"cudaMemcpy", "cudaLaunchKernel", "cudaStreamSynchronizeAll", "cudaStreamWaitEvent", "hipLaunchKernel", "cuckoo", "zebra",
		"synchronize", "deviceSynchronize", "hip_v",
	)
}

func TestUsefulFunctionsNeitherWaitNorCommunicate(t *testing.T) {
	for name, want := range map[string]bool{
		"main": true, "cudaMemcpy": true, "my_MPI_Wait()": true, "MPI": true,
		"MPI_Init()": false, "pmpi_finalize_": false, "MPI_Isend() [{x.c} {1,2}]": false, "MPI_Comm_rank()": false, "MPI_Wait()": false,
		"MPI Collective Sync": false, "cudaDeviceSynchronize": false,
	} {
		if provenance.Useful(name) != want {
			t.Errorf("%q: got %t", name, !want)
		}
	}
}
