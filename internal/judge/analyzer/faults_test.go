package analyzer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/testkit/faultdisk"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

func TestAnalysisOnFailingDiskIsCompleteOrFails(t *testing.T) {
	tracetest.SkipShort(t, "starts processes")
	if tracetest.WithoutRace(t) {
		return
	}
	result := func(spool string) (string, error) {
		cfg := analyzer.Default()
		cfg.SpoolDir = spool
		list := newRecordList()
		_, err := analyzer.New(cfg, list, nil).Run(t.Context(), []analyzer.Input{{Path: tracetest.Recorded(t, "gpu-BP5")[0]}})
		var all []string
		for id, status := range list.final {
			all = append(all, fmt.Sprint(id, " ", status))
		}
		slices.Sort(all)
		return "result: " + strings.Join(all, ", ") + "\n", err
	}
	if dir := faultdisk.Dir(); dir != "" {
		text, err := result(dir)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Print(text)
		return
	}
	want, err := result(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	faultdisk.Torture(t, 4, faultdisk.Journal, func(t *testing.T, after faultdisk.Aftermath) {
		if strings.Contains(after.Output, "result:") && !strings.Contains(after.Output, want) {
			t.Errorf("got %s, want %s", after.Output, want)
		}
		if got, err := result(after.Dir); got != want || err != nil {
			t.Errorf("another analysis: got %s, error %v", got, err)
		}
	})
}
