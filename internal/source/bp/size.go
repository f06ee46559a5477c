package bp

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Size returns the total size of the files of the dataset at path.
func Size(path string) (bytes int64) {
	for _, root := range []string{path, path + ".dir"} {
		// Reading the dataset reports files that cannot be accessed.
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
					bytes += info.Size()
				}
			}
			return nil
		})
	}
	return bytes
}
