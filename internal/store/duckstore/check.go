package duckstore

import (
	"context"
	"strings"
)

// Check reads all data and returns an error if the file is damaged. DuckDB verifies only the data that it reads.
func (s *Store) Check(ctx context.Context) error {
	rows, err := s.Query(ctx, "SELECT table_name FROM duckdb_tables() WHERE database_name = 'prov'")
	if err != nil {
		return err
	}
	tables, err := rows.Collect()
	if err != nil {
		return err
	}
	for _, t := range tables {
		name := strings.ReplaceAll(t[0].(string), `"`, `""`)
		rows, err := s.Query(ctx, `SELECT bit_xor(hash(t)) FROM "`+name+`" t`)
		if err == nil {
			_, err = rows.Collect()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
