package rundir

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// secretFile holds the token of the page of a run without services.
const secretFile = "http-token"

// Secret returns the token that the page of the run at path asks for. It stays the
// same, so that a browser which has shown it is known again: it is that of the
// services of the run, or else one that is made now and kept, for its owner only.
// Where that cannot be done there is an error, and a token for this once.
func Secret(path string) (token string, err error) {
	if s, err := ReadServices(path); err == nil && s.Secret != "" {
		return s.Secret, nil
	}
	name := filepath.Join(path, secretFile)
	kept, err := readSecret(name)
	if err == nil {
		return kept, nil
	}
	token = rand.Text()
	if errors.Is(err, os.ErrPermission) {
		return token, err // it is somebody else's
	}
	own := name + "." + token[:8]
	if err := Replace(own, []byte(token+"\n"), 0o600); err != nil {
		return token, err
	}
	defer os.Remove(own) //nolint:errcheck // the other name of the file stays
	switch err := os.Link(own, name); {
	case err == nil:
		return token, nil
	case errors.Is(err, os.ErrExist):
		if kept, err := readSecret(name); err == nil { // somebody was faster
			return kept, nil
		}
	}
	return token, os.Rename(own, name) // there are no links here, or what is there is no token
}

func readSecret(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 {
		return "", errors.New("it is too short for a token")
	}
	return token, nil
}
