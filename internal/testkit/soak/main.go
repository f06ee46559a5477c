// Command soak analyzes a simulated program for a long time while it kills and restarts
// analyzers and queries the services. It samples memory, goroutines and file descriptors
// of the services, prints a table, and fails if one of them keeps growing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	s := new(soak)
	flag.StringVar(&s.program, "program", "bin/chimbuko", "path of chimbuko")
	flag.DurationVar(&s.length, "for", time.Hour, "run time of the simulated program")
	flag.IntVar(&s.ranks, "ranks", 4, "number of ranks")
	flag.DurationVar(&s.restart, "restart", 20*time.Second, "time between two kills of an analyzer")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of the program and of the kills")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to clean up
	}
}

// soak is one run.
type soak struct {
	program string
	length  time.Duration
	restart time.Duration
	ranks   int
	seed    uint64

	dir                    string
	web, token, name       string
	queries, fails, killed atomic.Int64
	samples                []sample
}

// run runs program, services, analyzers and queries until the simulated program ends.
func (s *soak) run(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "chimbuko-soak-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir) //nolint:errcheck // temporary files
	serve, err := s.start(ctx, "serve", "--out", s.path("run"), "--ranks", fmt.Sprint(s.ranks))
	if err != nil {
		return err
	}
	defer serve.Process.Kill() //nolint:errcheck // it has ended unless there was an error
	if err := s.await(ctx, serve.Process.Pid); err != nil {
		return fmt.Errorf("%w\n%s", err, s.log("serve"))
	}
	simulate, err := s.start(ctx, "simulate", "--live", "--scenario", "slow-rank", "--out", s.path("traces"),
		"--ranks", fmt.Sprint(s.ranks), "--seed", fmt.Sprint(s.seed), "--duration", s.length.String())
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	var analyzers, others sync.WaitGroup
	failures := make(chan error, s.ranks)
	for rank := range s.ranks {
		analyzers.Go(func() { failures <- s.analyze(ctx, running, rank) })
	}
	for range 2 {
		others.Go(func() { s.query(running) })
	}
	others.Go(func() { s.sampleAll(running) })
	err = simulate.Wait()
	stop()
	others.Wait()
	fmt.Printf("%s of %d ranks: %d queries (%d failed), %d analyzers killed\n",
		s.length, s.ranks, s.queries.Load(), s.fails.Load(), s.killed.Load())
	analyzers.Wait()
	close(failures)
	for e := range failures {
		err = errors.Join(err, e)
	}
	if err := errors.Join(err, serve.Wait()); err != nil {
		return fmt.Errorf("%w\n%s", err, s.log("serve"))
	}
	if s.fails.Load() > 0 {
		return fmt.Errorf("%d of %d queries failed", s.fails.Load(), s.queries.Load())
	}
	return s.judge()
}

func (s *soak) path(name string) string { return filepath.Join(s.dir, name) }

// log returns the end of the log of a process.
func (s *soak) log(name string) string {
	b, _ := os.ReadFile(s.path(name + ".log"))
	return string(b[max(0, len(b)-4000):])
}

// start starts a command of chimbuko, whose output goes to a log.
func (s *soak) start(ctx context.Context, args ...string) (*exec.Cmd, error) {
	return s.startAs(ctx, args[0], args...)
}

func (s *soak) startAs(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(s.path(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has it
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

// await waits for the address and token of the services.
func (s *soak) await(ctx context.Context, pid int) error {
	for range 600 {
		var services struct {
			Run   string `json:"run"`
			Web   string `json:"http"`
			Token string `json:"http_token"`
			PID   int    `json:"pid"`
		}
		b, err := os.ReadFile(filepath.Join(s.path("run"), "services.json"))
		if err == nil && json.Unmarshal(b, &services) == nil && services.Web != "" && services.PID == pid {
			s.web, s.token, s.name = services.Web, services.Token, services.Run
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("the services did not start within a minute")
}

// analyze runs the analyzer of a rank and replaces it after kills, until running ends.
func (s *soak) analyze(ctx, running context.Context, rank int) error {
	rng := rand.New(rand.NewPCG(s.seed, uint64(rank)))
	name := fmt.Sprint("ad-", rank)
	for {
		cmd, err := s.startAs(ctx, name, "ad", "--run-dir", s.path("run"), "--traces", "1",
			filepath.Join(s.path("traces"), fmt.Sprintf("*-%d.bp", rank)))
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		pause := s.restart*time.Duration(s.ranks)/2 + time.Duration(rng.Int64N(int64(s.restart)*int64(s.ranks)))
		select {
		case err := <-ended:
			return s.explain(name, err)
		case <-running.Done():
			return s.explain(name, <-ended)
		case <-time.After(pause):
		}
		s.killed.Add(1)
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		<-ended
	}
}

// explain adds the log of a process to its error.
func (s *soak) explain(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w\n%s", name, err, s.log(name))
}
