//go:build !unix

package node

// ProcessorSeconds is not known here.
func ProcessorSeconds() float64 { return 0 }
