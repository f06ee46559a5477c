package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces the content of a file atomically. The new content is on disk when
// Replace returns.
func Replace(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // err says more
	}
	return err
}
