package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file as a whole: who reads it sees the old or the new content,
// which is on disk when Replace returns.
func Replace(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // which only its owner can read
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
		_ = os.Remove(f.Name()) // what failed is told
	}
	return err
}
