//go:build !unix

package cli

// processorSeconds is not known here.
func processorSeconds() float64 { return 0 }
