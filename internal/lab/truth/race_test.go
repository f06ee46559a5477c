//go:build race

package truth_test

func init() { raceDetector = true }
