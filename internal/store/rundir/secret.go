package rundir

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// secretFile holds the token of the page of a run without services.
const secretFile = "http-token"

// Secret returns the token of the page of the run at path. It stays the same, so that
// browsers need it only once: it is the token of the run's services, or one that the first
// call generates and stores, readable by this user alone. If it cannot be stored, Secret
// returns an error and a temporary token.
func Secret(path string) (token string, err error) {
	if s, err := runfiles.ReadServices(path); err == nil && s.Secret != "" {
		return s.Secret, nil
	}
	name := filepath.Join(path, secretFile)
	kept, err := readSecret(name)
	if err == nil {
		return kept, nil
	}
	token = rand.Text()
	if errors.Is(err, os.ErrPermission) {
		return token, err // of another user
	}
	own := name + "." + token[:8]
	if err := atomicfile.Write(own, []byte(token+"\n"), 0o600); err != nil {
		return token, err
	}
	defer os.Remove(own) //nolint:errcheck // name stays
	switch err := os.Link(own, name); {
	case err == nil:
		return token, nil
	case errors.Is(err, os.ErrExist):
		if kept, err := readSecret(name); err == nil { // another process was faster
			return kept, nil
		}
	}
	return token, os.Rename(own, name) // no hard links on this file system, or the file has no token
}

func readSecret(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 {
		return "", errors.New("too short for a token")
	}
	return token, nil
}
