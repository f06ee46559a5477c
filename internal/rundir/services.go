package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Services tell how to reach the services of a run. The file holds secrets, so
// only its owner can read it.
type Services struct {
	Run     string    `json:"run"`
	Bus     string    `json:"nats"` // URL
	Token   string    `json:"nats_token,omitempty"`
	CA      string    `json:"nats_ca,omitempty"` // file with who signed the certificate
	Shards  int       `json:"shards"`
	Web     string    `json:"http,omitempty"` // URL
	Secret  string    `json:"http_token,omitempty"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
}

// servicesFile tells analysers how to reach the services.
const servicesFile = "services.json"

// WriteServices tells in the run directory at path how to reach the services.
func WriteServices(path string, s *Services) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(path, servicesFile)
	if err := os.WriteFile(name+".new", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// ReadServices reads what WriteServices wrote.
func ReadServices(path string) (*Services, error) {
	name := filepath.Join(path, servicesFile)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := new(Services)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.Bus == "" || s.Run == "" {
		return nil, fmt.Errorf("%s: %w", name, errors.New("it names no services"))
	}
	return s, nil
}

// Open returns the run directory at path, which is there, to go on with its run.
func Open(path string) (*Dir, error) {
	if _, err := os.Stat(filepath.Join(path, infoFile)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(path, "spool"), 0o755); err != nil {
		return nil, err
	}
	return newDir(path), nil
}

// ReadInfo reads run.json.
func (d *Dir) ReadInfo(v any) error {
	b, err := os.ReadFile(filepath.Join(d.path, infoFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(d.path, infoFile), err)
	}
	return nil
}

// Path is where the directory is.
func (d *Dir) Path() string { return d.path }

// Bus is a directory for the files of the message bus.
func (d *Dir) Bus() string { return filepath.Join(d.path, "nats") }

// Parameters is a directory for what the parameter server knows.
func (d *Dir) Parameters() string { return filepath.Join(d.path, "parameters") }

// Waiting is a directory for packets of statistics that wait for their receiver.
func (d *Dir) Waiting() string { return filepath.Join(d.path, "stats-waiting") }
