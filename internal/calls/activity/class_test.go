package activity

import "testing"

func TestGroup(t *testing.T) {
	for name, want := range map[string]string{
		"MPI_Allreduce()": "mpi", "PMPI_Wait": "mpi", "mpi_send_": "mpi", "MPI Collective Sync": "mpi", "MPI_File_write_all()": "io",
		"ncclAllReduce":    "mpi",
		"cudaLaunchKernel": "gpu", "cuLaunchKernel": "gpu", "cumulate(int)": "user", "hipMemcpy": "gpu", "hips": "user",
		"zeCommandListAppend": "gpu", "zero": "user",
		"open": "io", "read": "io", "write()": "io", "fopen64": "io", "pread64 [{/lib} {0}]": "io", "reader": "user",
		"write_block(FILE*)": "user",
		"H5Dwrite":           "io", "h5fopen_f": "io", "adios2::Engine::Put": "io", "nc_put_var": "io", "ncmpi_put_var": "io",
		".TAU application": "user", "main": "user", "": "user", "void solver::Grid<double, 3>::relax(int)": "user", "openMesh": "user",
	} {
		if got := Group(name, false); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
		if got := Group(name, true); got != "gpu" {
			t.Errorf("%q on a GPU is %s", name, got)
		}
	}
}
