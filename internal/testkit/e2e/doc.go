// Package e2e holds the tests that run the program as users do: its services and
// analyzers as processes that talk to each other on this machine.
package e2e
