package rundir

import (
	"fmt"
	"os"

	"github.com/chimbuko/chimbuko/internal/base/atomicfile"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// SaveModels replaces the file at path by models.
func SaveModels(path string, m *analyzer.Models) error {
	return atomicfile.Write(path, m.AppendBinary(nil), 0o644)
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
