package main

import (
	"bytes"
	"os"
	"testing"
)

func TestGeneratedCodeIsCurrent(t *testing.T) {
	t.Chdir("..")
	want, err := generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not that of %s; run go generate ./internal/online/protocol", target, source)
	}
}
