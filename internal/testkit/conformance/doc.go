// Package conformance holds the tests that all formats give the same result: they write one program in each format
// that Chimbuko reads, and compare its calls, its messages and its findings.
package conformance
