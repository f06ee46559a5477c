//go:build !unix

package service

// processorSeconds is not known here.
func processorSeconds() float64 { return 0 }
