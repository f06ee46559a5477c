// Package layers holds the test that keeps the packages in their layers: the
// table in docs/architecture.md defines the allowed imports.
package layers
