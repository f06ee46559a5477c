package duckstore

// DuckDB's Go bindings export all symbols of the program for extensions, which we do not load. Without these
// symbols the program is 7 MB smaller and starts and links faster.

// #cgo linux LDFLAGS: -Wl,--no-export-dynamic
import "C"
