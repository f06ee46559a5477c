// Package golden has the tests of docs/compatibility.md: the program has all commands, flags, routes, fields, views and columns
// that testdata/golden lists, and answers every query about the runs of earlier versions as it did when they were recorded.
package golden
