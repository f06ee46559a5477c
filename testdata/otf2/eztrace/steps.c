/* Each rank works for about a millisecond, sends to its neighbor and takes part in a sum. Rank 1 sleeps for 40 ms before
   cycles 60, 110 and 160. */
#include <mpi.h>
#include <time.h>
#include <unistd.h>
static void work(void) {
	struct timespec t, now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while ((now.tv_sec - t.tv_sec) * 1000000000L + now.tv_nsec - t.tv_nsec < 1000000L);
}
int main(int argc, char **argv) {
	int rank, ranks;
	double x = 1, y, sum;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < 200; i++) {
		work();
		if (rank == 1 && (i == 60 || i == 110 || i == 160)) usleep(40000);
		MPI_Sendrecv(&x, 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &y, 1, MPI_DOUBLE, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Allreduce(&y, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
