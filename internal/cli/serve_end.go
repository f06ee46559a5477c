package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/analyzer"
	"github.com/chimbuko/chimbuko/internal/outlier"
	"github.com/chimbuko/chimbuko/internal/provdb"
	"github.com/chimbuko/chimbuko/internal/provenance"
	"github.com/chimbuko/chimbuko/internal/recordstream"
	"github.com/chimbuko/chimbuko/internal/rundir"
	"github.com/chimbuko/chimbuko/internal/summary"
)

// hostPort is the part of a URL that says where to connect.
func hostPort(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// runParams runs the parameter server; its first shard ends the run when all
// has been reviewed.
func (s *serveRun) runParams(ctx context.Context) error {
	if s.flags.shard > 0 {
		return s.params.Run(ctx)
	}
	live, stop := context.WithCancel(ctx)
	defer stop()
	var statistics sync.WaitGroup
	statistics.Go(func() { s.sendStatistics(live) })
	statistics.Go(func() { s.storePaths(live) })
	err := s.params.Run(ctx)
	stop()
	statistics.Wait() // the last packet is made now
	if err != nil {
		return err
	}
	if err := s.conclude(ctx); err != nil {
		return err
	}
	s.state.Finish()
	if s.sender == nil {
		return nil
	}
	flush, cancel := context.WithTimeout(ctx, s.flags.flush)
	defer cancel()
	return s.sender.Close(flush)
}

// conclude stores what is known over all ranks, which is the end of the run.
func (s *serveRun) conclude(ctx context.Context) error {
	learned, err := s.params.CollectModels(ctx, s.conn)
	if err != nil {
		return err
	}
	outcome, err := s.state.Outcome(learned)
	if err != nil {
		return err
	}
	models := s.models(outcome, learned)
	if s.flags.saveTo != "" {
		if err := rundir.SaveModels(s.flags.saveTo, models); err != nil {
			return err
		}
	}
	ad, err := models.ADModels()
	if err != nil {
		return err
	}
	outcome.Changes = models.Changes()
	s.sum.Traces, s.sum.TraceBytes = s.state.Traces()
	s.sum.finish(outcome)
	if err := s.openStream(ctx); err != nil {
		return err
	}
	id := "finish-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if err := recordstream.Finish(ctx, s.stream, s.run, recordSubject(s.run), id, provenance.NewCollections(outcome, ad), s.sum); err != nil {
		return err
	}
	if err := s.waitForStore(ctx); err != nil {
		return err
	}
	s.removeStream(ctx)
	return nil
}

// waitForStore waits until the store has taken all records. A server that was killed
// after it had said that the run ends, and is started again, says so twice: the store
// ends the run with the first and does not take the second.
func (s *serveRun) waitForStore(ctx context.Context) error {
	for {
		left, _, err := s.stream.Pending(ctx)
		if err == nil && left == 0 || s.hasFinished() {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// models are those of the functions that were called, which are judged as the
// analysers judge.
func (s *serveRun) models(o *summary.Outcome, learned map[uint32]outlier.Model) *analyzer.Models {
	cfg := analyzer.Default().Outlier
	for _, n := range s.params.Report().Nodes {
		if json.Unmarshal([]byte(n.Settings), &cfg) == nil {
			break
		}
	}
	models := analyzer.NewModels(outlier.NewRules(cfg))
	for _, f := range o.Functions {
		models.Add(f.Function, learned[uint32(f.ID)])
	}
	return models
}

// storeEnd ends the run in the store and in its directory.
func (s *serveRun) storeEnd(ctx context.Context, info json.RawMessage) error {
	final := new(runSummary)
	if err := json.Unmarshal(info, final); err != nil {
		return err
	}
	issues, err := s.keeper.findOut(ctx, final, info)
	if err != nil {
		return err
	}
	final.setIssues(issues)
	if err := s.keeper.end(ctx, provdb.Finished, final); err != nil {
		return err
	}
	s.final = final
	return s.keeper.dir.RemoveSpool()
}

// tellEnd says what came of the run, when all parts of this process have ended:
// the database has its size only then.
func (s *serveRun) tellEnd() error {
	if s.final == nil {
		return nil
	}
	s.final.measure(s.keeper.size())
	if err := s.keeper.dir.WriteInfo(s.final); err != nil {
		return err
	}
	return s.env.show(false, nil, func(w io.Writer) { s.final.print(w, s.flags.out) })
}

// sendStatistics makes packets until ctx ends, and then the last.
func (s *serveRun) sendStatistics(ctx context.Context) {
	for more := true; more; {
		more = sleep(ctx, s.flags.period) == nil
		if s.sender == nil {
			s.state.Discard()
			continue
		}
		if packet, _ := s.state.Packet(s.flags.schema, time.Now()); string(packet) != "{}" {
			s.sender.Send(packet)
		}
	}
}

// startShards starts the processes of the other shards, and starts them again
// when they die.
func (s *serveRun) startShards(ctx context.Context, g *errgroup.Group) {
	for i := 1; i < s.flags.shards; i++ {
		g.Go(func() error {
			for ctx.Err() == nil {
				err := s.runShard(ctx, i)
				if ctx.Err() != nil {
					return nil
				}
				s.log.Error("a shard of the parameter server ended and is started again", "shard", i, "error", err)
				_ = sleep(ctx, time.Second) // the loop looks at ctx
			}
			return nil
		})
	}
}

func (s *serveRun) runShard(ctx context.Context, shard int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{
		"serve", "--out", s.flags.out, "--name", s.run, "--roles", roleParams, "--shard", strconv.Itoa(shard), "--shards", strconv.Itoa(s.flags.shards),
		"--snapshot", s.flags.snapshot.String(),
	}
	if s.flags.loadFrom != "" {
		args = append(args, "--load-model", s.flags.loadFrom, fmt.Sprintf("--freeze-model=%t", s.flags.frozen))
	}
	environ := s.env.Environ
	if s.flags.url != "" {
		args = append(args, "--nats-token-file", s.flags.tokenFile, "--nats-creds", s.flags.creds, "--nats-ca", s.flags.ca, "--nats-cert", s.flags.cert, "--nats-key", s.flags.key)
		if withoutPassword(s.flags.url) == s.flags.url {
			args = append(args, "--nats", s.flags.url)
		} else { // everybody can read a command line
			environ = append(slices.Clone(environ), "CHIMBUKO_NATS="+s.flags.url)
		}
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // this very program
	cmd.Stderr = s.env.Stderr
	cmd.Env = environ
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	alive, err := cmd.StdinPipe() // ends with this process, however that ends
	if err != nil {
		return err
	}
	defer alive.Close() //nolint:errcheck // nothing is written to it
	return cmd.Run()
}

// untilOrphaned ends with ctx, and when the process that started this one for a
// shard ends: another would soon be started for the same shard.
func untilOrphaned(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if stdin == nil {
		stdin = os.Stdin
	}
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, stdin) // nothing is said, but it ends
	}()
	return ctx, cancel
}

// keepOnline makes the run directory and the run in the store, or goes on with
// a run that is there and has not ended.
func keepOnline(ctx context.Context, flags *keeperFlags, sum *runSummary) (*keeper, error) {
	if !flags.force {
		if err := joinServices(flags.out, sum); err != nil {
			return nil, err
		}
		if k, err := resume(ctx, flags, sum); k != nil || err != nil {
			return k, err
		}
	}
	return newKeeper(ctx, flags, sum.Started, sum)
}

// resume goes on with a run; nil if there is none.
func resume(ctx context.Context, flags *keeperFlags, sum *runSummary) (*keeper, error) {
	dir, err := rundir.Open(flags.out)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	var old runSummary
	if err := dir.ReadInfo(&old); err != nil {
		return nil, err
	}
	if !old.Online || old.State != provdb.Running {
		return nil, nil //nolint:nilnil // newKeeper says what to do about it
	}
	sum.Started = old.Started
	k := &keeper{dir: dir}
	if err := k.openStore(ctx, flags); err != nil {
		return nil, errors.Join(err, k.close())
	}
	err = k.findRun(ctx, flags)
	if errors.Is(err, provdb.ErrNotFound) { // nobody came to make it
		err = k.createRun(ctx, flags, sum.Started, sum)
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}
