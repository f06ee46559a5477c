// Package python holds the tests of the Python package in python/, of the wheel that contains the program, and of the
// notebook in docs.
package python
