//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bus

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the lock on a file, which it makes when missing, or fails with
// errLocked. A process that ends gives it back. Some parallel file systems have no
// locks; there nothing is locked.
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
