package e2e

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/store/runfiles"
	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

func TestSeparateRolesStartInAnyOrder(t *testing.T) {
	t.Parallel()
	f := func(order string) {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			r := threeRanks(t)
			s := newScene(t)
			ads := s.ads(r)
			parts := map[string]*process{}
			for role := range strings.SplitSeq(order, " ") {
				args := []string{"--roles", role, "--ranks", "3"}
				if role == "params" {
					args = append(args, "--save-model", s.path("model"))
				}
				parts[role] = s.serve(args...)
				if role == "nats" {
					s.services()
				} else {
					parts[role].awaitLog("chimbuko: ") // its role, or what it waits for
				}
			}
			succeed(s.replay(r, "4"))
			eventually(t, "the run is announced with HTTP", func() error {
				if found, err := runfiles.ReadServices(s.run); err != nil || found.Web == "" {
					return errors.Join(err, errors.New("no HTTP"))
				}
				return nil
			})
			succeed(append(ads, parts["params"], parts["store"])...)
			if st, err := s.status(); err != nil || st.Run.State != api.Finished {
				t.Errorf("after the end the status is %+v, %v", st, err)
			}
			code, text := s.get("/api/v1/runs/run/top", s.services().Secret)
			if code != 200 || !strings.Contains(text, "stencil_kernel") {
				t.Errorf("query of the worst functions: HTTP %d: %s", code, text)
			}
			for _, role := range []string{"nats", "web"} {
				if !parts[role].running() {
					t.Errorf("the role %s, which does not end by itself, has ended", role)
				}
				parts[role].signal(syscall.SIGTERM)
				parts[role].wait()
			}
			agree(t, outcomeOf(t, s.path("model"), s.run), offlineOf(t, r))
		})
	}
	f("nats params store web")
	f("web store params nats")
	f("nats web store params")
	f("store params web nats")
}

func TestRecordsAreKeptInPostgreSQL(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{NoSync: true})
	store := server.Database(t)
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3", "--store", store, "--name", "kept on a server", "--save-model", s.path("model"))
	s.services() // have the name of the run for analyzers
	ads, last := s.allButLast(r)
	replay := s.replay(r, "1")
	s.steps(6)
	serve.kill()
	serve = s.serve("--ranks", "3", "--store", store, "--name", "kept on a server", "--save-model", s.path("model"))
	replay.succeed()
	succeed(append(ads, last(), serve)...)
	agree(t, outcomeOf(t, s.path("model"), store, "--run", "kept on a server"), offlineOf(t, r))
	if found, _ := filepath.Glob(filepath.Join(s.run, "*.duckdb")); len(found) > 0 {
		t.Errorf("there is also %v", found)
	}
	contains(t, must(t, "top", s.run), "assemble(int)") // the run directory has the place of the records
}
