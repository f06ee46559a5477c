package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Services tell how to reach the services of a run. The file holds secrets, so
// only its owner can read it.
type Services struct {
	Run      string    `json:"run"`
	Bus      string    `json:"nats"`                          // URL
	Token    string    `json:"nats_token,omitempty"`          // of the services
	Analyzer string    `json:"nats_analyzer_token,omitempty"` // of analyzers, who may do less
	CA       string    `json:"nats_ca,omitempty"`             // file with who signed the certificate
	Shards   int       `json:"shards"`
	Web      string    `json:"http,omitempty"` // URL
	Secret   string    `json:"http_token,omitempty"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
}

const (
	servicesFile = "services.json"  // tells analyzers how to reach the services
	analyzerFile = "analyzer-token" // the token of analyzers alone, for nodes that cannot read the directory
)

// WriteServices tells in the run directory at path how to reach the services.
func WriteServices(path string, s *Services) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if s.Analyzer != "" {
		err = Replace(AnalyzerToken(path), []byte(s.Analyzer+"\n"), 0o600)
	}
	return errors.Join(err, Replace(filepath.Join(path, servicesFile), append(b, '\n'), 0o600))
}

// AnalyzerToken is the file, in the run directory at path, with the token of analyzers.
func AnalyzerToken(path string) string { return filepath.Join(path, analyzerFile) }

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
	return Join(path)
}

// Join returns the run directory at path, where services of a run were started
// before it was made.
func Join(path string) (*Dir, error) {
	if err := os.MkdirAll(filepath.Join(path, spoolDir), 0o755); err != nil {
		return nil, err
	}
	return newDir(path), nil
}

// What services keep in the run directory besides the store.
const (
	busDir        = "nats"
	parametersDir = "parameters"
	waitingDir    = "stats-waiting"
	tracesDir     = "tau-traces"
	logsDir       = "logs"
)

// Bus is the directory, in that of the run at path, for the message bus.
func Bus(path string) string { return filepath.Join(path, busDir) }

// Parameters is that for what the parameter server knows.
func Parameters(path string) string { return filepath.Join(path, parametersDir) }

// Waiting is that for packets of statistics that wait for their receiver.
func Waiting(path string) string { return filepath.Join(path, waitingDir) }

// Traces is that for traces which a program writes for the run.
func Traces(path string) string { return filepath.Join(path, tracesDir) }

// EscapeGlob returns a pattern that matches path only.
func EscapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Logs is that for what the processes of the run say.
func Logs(path string) string { return filepath.Join(path, logsDir) }

// OnlyServices reports whether the directory at path holds something, but only of
// services that were started before the store has made the run.
func OnlyServices(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 {
		return false
	}
	return !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !slices.Contains([]string{servicesFile, analyzerFile, busDir, parametersDir, waitingDir, spoolDir, tracesDir, logsDir},
			e.Name()) &&
			!strings.HasPrefix(e.Name(), servicesFile) && !strings.HasPrefix(e.Name(), analyzerFile)
	})
}
