//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bus

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file, which it creates if missing, or fails with errLocked. The
// lock ends with the process. On file systems without locks it locks nothing.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		_ = f.Close()
		return nil, errLocked
	case err != nil && !errors.Is(err, syscall.ENOSYS) && !errors.Is(err, syscall.ENOTSUP):
		_ = f.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { _ = f.Close() }, nil
}
