//go:build !linux

package e2e

import (
	"errors"
	"testing"
)

func newSwitch(testing.TB, *wires, int) (fabric, error) {
	return nil, errors.New("network namespaces need Linux")
}
