//go:build !linux

package duckstore

import "math"

func lowerPriority() {}

// limitMemory does nothing: DuckDB's own limit remains.
func limitMemory(int64) error { return nil }

// machineMemory returns what most machines have.
func machineMemory() int64 { return 8 << 30 }

func freeSpace(string) int64 { return math.MaxInt64 }
