// Functions of glibc versions after 2.28, for programs that must run with 2.28. libstdc++ uses them, and so do Go's packages
// if they are compiled with the headers of this machine.

#include <resolv.h>
#include <stdlib.h>
#include <sys/random.h>

// Since glibc 2.32: whether the process has a single thread, so that atomic operations are not needed.
// 0, for several threads, is correct for all processes.
char __libc_single_threaded = 0;

// Since glibc 2.36: a random number, for std::random_device.
unsigned int arc4random(void) {
	unsigned int n;
	if (getrandom(&n, sizeof n, 0) != sizeof n) // can only fail before Linux 3.17
		abort();
	return n;
}

// Since glibc 2.34: the name of __res_search.
#undef res_search
int res_search(const char *name, int class, int type, unsigned char *answer, int length) {
	return __res_search(name, class, type, answer, length);
}
