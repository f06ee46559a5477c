package pgtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
)

// oldest is the oldest version that will do; scripts/test-setup says the same.
const oldest = 14

// find returns the directory of PostgreSQL's programs: of all in PATH and where
// Debian keeps them, the newest.
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
	best, of := 0, ""
	for _, dir := range dirs {
		if v := version(dir); v > best {
			best, of = v, dir
		}
	}
	switch {
	case best == 0:
		return "", fmt.Errorf("%w: no server is installed", errMissing)
	case best < oldest:
		return "", fmt.Errorf("%w: version %d or newer is needed, the newest that is installed is %d", errMissing, oldest, best)
	}
	return of, nil
}

var versionText = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// version returns the major version of the server in a directory, 0 if there
// is none.
func version(dir string) int {
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return 0
	}
	v, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return 0
	}
	return v
}
