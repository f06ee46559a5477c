// Package page holds the test of the page in a real browser. It is a package of its own because it takes as long as
// all other end-to-end tests, beside which it runs.
package page
