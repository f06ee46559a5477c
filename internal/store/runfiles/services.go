package runfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/base/trace"
)

// Services has the addresses of the services of a run. The file has secrets, so only its
// owner can read it.
type Services struct {
	Run      string    `json:"run"`
	Bus      string    `json:"nats"`                          // URL
	Token    string    `json:"nats_token,omitempty"`          // of the services
	Analyzer string    `json:"nats_analyzer_token,omitempty"` // of analyzers, with fewer rights
	CA       string    `json:"nats_ca,omitempty"`             // file with the certificate authority
	Shards   int       `json:"shards"`
	Web      string    `json:"http,omitempty"` // URL
	Secret   string    `json:"http_token,omitempty"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
}

const (
	servicesFile = "services.json"  // addresses of the services
	analyzerFile = "analyzer-token" // token of analyzers, for nodes that cannot read the directory
)

// OfServices are the names of all files and directories of services, which may exist before the run.
var OfServices = []string{servicesFile, analyzerFile, busDir, parametersDir, pendingStatsDir, tracesDir, logsDir, programsFile}

// WriteServices writes the addresses of the services to the run directory at path.
func WriteServices(path string, s *Services) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if s.Analyzer != "" {
		err = atomicfile.Write(AnalyzerToken(path), []byte(s.Analyzer+"\n"), 0o600)
	}
	return errors.Join(err, atomicfile.Write(filepath.Join(path, servicesFile), append(b, '\n'), 0o600))
}

// AnalyzerToken returns the file with the token of analyzers in the run directory at path.
func AnalyzerToken(path string) string { return filepath.Join(path, analyzerFile) }

// ReadServices reads the file that WriteServices wrote.
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
		return nil, fmt.Errorf("%s: nats or run is missing", name)
	}
	return s, nil
}

// Directories of services in the run directory.
const (
	busDir          = "nats"
	parametersDir   = "parameters"
	pendingStatsDir = "stats-waiting"
	tracesDir       = "tau-traces"
	logsDir         = "logs"
)

// Bus returns the directory of the message bus in the run directory at path.
func Bus(path string) string { return filepath.Join(path, busDir) }

// Parameters returns the directory of the parameter server.
func Parameters(path string) string { return filepath.Join(path, parametersDir) }

// PendingStats returns the directory of statistics packets that wait for their receiver.
func PendingStats(path string) string { return filepath.Join(path, pendingStatsDir) }

// Traces returns the directory of traces that a program writes for the run.
func Traces(path string) string { return filepath.Join(path, tracesDir) }

// EscapeGlob returns a pattern that matches path only.
func EscapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// programsFile has the numbers of programs that analyzers assigned to names of traces.
const programsFile = "programs.json"

// ReadPrograms returns the numbers of programs by the names of their traces that analyzers of the
// run at path have stored.
func ReadPrograms(path string) (numbers map[string]trace.Program) {
	b, err := os.ReadFile(filepath.Join(path, programsFile))
	if err != nil || json.Unmarshal(b, &numbers) != nil {
		return nil
	}
	return numbers
}

// WritePrograms stores numbers of programs. It returns an error if the run has no services yet.
func WritePrograms(path string, numbers map[string]trace.Program) error {
	if _, err := ReadServices(path); err != nil {
		return err
	}
	b, err := json.Marshal(numbers)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(path, programsFile), b, 0o644)
}

// Logs returns the directory of the logs of the run's processes.
func Logs(path string) string { return filepath.Join(path, logsDir) }
