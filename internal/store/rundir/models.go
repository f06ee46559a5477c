package rundir

import (
	"fmt"
	"os"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// SaveModels writes models to a file, which is replaced as a whole.
func SaveModels(path string, m *analyzer.Models) error {
	if err := os.WriteFile(path+".new", m.AppendBinary(nil), 0o644); err != nil { //nolint:gosec // meant to be read by all
		return err
	}
	return os.Rename(path+".new", path)
}

// LoadModels reads models from a file.
func LoadModels(path string, rules *outlier.Rules) (*analyzer.Models, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := analyzer.ReadModels(b, rules)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
