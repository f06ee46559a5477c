package pgtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
)

// oldest is the oldest supported version, as in scripts/test-setup.
const oldest = 14

// find returns the directory of PostgreSQL's programs: the newest in PATH and in Debian's
// directories.
var find = sync.OnceValues(func() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	if postgres, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(postgres))
	}
	return newest(dirs)
})

func newest(dirs []string) (string, error) {
	best, bestDir := 0, ""
	for _, dir := range dirs {
		if v := version(dir); v > best {
			best, bestDir = v, dir
		}
	}
	switch {
	case best == 0:
		return "", fmt.Errorf("%w: no server is installed", errMissing)
	case best < oldest:
		return "", fmt.Errorf("%w: version %d is installed (want %d or newer)", errMissing, best, oldest)
	}
	return bestDir, nil
}

var versionText = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// version returns the major version of the server in a directory, or 0.
func version(dir string) int {
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	v := 0
	if m := versionText.FindSubmatch(out); m != nil {
		v, _ = strconv.Atoi(string(m[1])) // digits
	}
	return v
}
