package sqlitetrace

import "github.com/chimbuko/chimbuko/internal/source/sqlitefile"

func rocpdSuffixes(*sqlitefile.DB) []string { return nil }

func readRocpd(*builder) error { return nil }
