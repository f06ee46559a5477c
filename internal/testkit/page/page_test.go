package page

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// The page is tested in a real browser by the tests in web/e2e, against this program.
// Each of them is a subtest here.
func TestPageInBrowser(t *testing.T) {
	tracetest.SkipShort(t, "needs a browser")
	web, err := filepath.Abs("../../../web")
	if err != nil {
		t.Fatal(err)
	}
	vitest := filepath.Join(web, "node_modules", ".bin", "vitest")
	for _, needed := range []string{vitest, chromium()} {
		if _, err := os.Stat(needed); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%v; scripts/test-setup installs it", err)
			}
			t.Skipf("%v; scripts/test-setup installs it", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "chimbuko")
	build := exec.CommandContext(ctx, "go", "build", tracetest.LinkFlags(), "-o", program, "github.com/chimbuko/chimbuko/cmd/chimbuko")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.CommandContext(ctx, vitest, "run", "--config", "e2e/vitest.config.ts", "--reporter=json", "--outputFile="+report)
	cmd.Dir = web
	cmd.Env = append(os.Environ(), "CHIMBUKO="+program, "CHROMIUM="+chromium())
	output, runErr := cmd.CombinedOutput()
	b, err := os.ReadFile(report) //nolint:gosec // the name was made here
	if err != nil {
		t.Fatalf("%v, %v\n%s", runErr, err, output)
	}
	var results struct {
		TestResults []struct {
			Name             string `json:"name"`
			Message          string `json:"message"`
			Status           string `json:"status"`
			AssertionResults []struct {
				FullName        string   `json:"fullName"`
				Status          string   `json:"status"`
				FailureMessages []string `json:"failureMessages"`
			} `json:"assertionResults"`
		} `json:"testResults"`
	}
	if err := json.Unmarshal(b, &results); err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, file := range results.TestResults {
		if file.Status != "passed" && len(file.AssertionResults) == 0 {
			t.Errorf("%s: %s", filepath.Base(file.Name), file.Message)
		}
		for _, r := range file.AssertionResults {
			t.Run(r.FullName, func(t *testing.T) {
				if r.Status != "passed" {
					t.Errorf("%s: %s\n%s", filepath.Base(file.Name), r.Status, strings.Join(r.FailureMessages, "\n"))
					return
				}
				passed++
			})
		}
	}
	if passed == 0 {
		t.Errorf("no test of the page passed: %v\n%s", runErr, output)
	}
}

// chromium is the path of Chromium, preferably of the program without a window, which needs a third less time.
func chromium() string {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return "/usr/bin/chromium"
}
