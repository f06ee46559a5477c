// Package atomicfile creates and replaces files atomically.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of a file. Readers see the old or the new content, which is on
// disk when Write returns.
func Write(path string, content []byte, mode fs.FileMode) error {
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
		_ = os.Remove(f.Name()) // err is the cause
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Publish renames a complete file to path, or returns fs.ErrExist if path exists. The new name is on
// disk when Publish returns nil. Publish removes the old name in any case.
func Publish(temp, path string) error {
	defer os.Remove(temp) //nolint:errcheck // a rename has removed it
	err := os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // no hard links on this file system
		if _, statErr := os.Lstat(path); statErr == nil {
			return fs.ErrExist
		}
		err = os.Rename(temp, path)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the entries of a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
