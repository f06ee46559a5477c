package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

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
	return s.closeSender(ctx)
}

// closeSender waits until all statistics are delivered, for as long as the flags say.
func (s *serveRun) closeSender(ctx context.Context) error {
	if s.sender == nil {
		return nil
	}
	flush, cancel := context.WithTimeout(ctx, s.flags.flush)
	defer cancel()
	return s.sender.Close(flush)
}

// conclude stores what is known over all ranks, which is the end of the run.
func (s *serveRun) conclude(ctx context.Context) error {
	var learned map[uint32]outlier.Model
	err := s.insist(ctx, "the models of all shards", func(ctx context.Context) (err error) {
		learned, err = s.params.CollectModels(ctx, s.conn)
		return err
	})
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
	if err := s.insist(ctx, "the stream of records", s.openStream); err != nil {
		return err
	}
	if err := s.salvage(ctx, models, outcome); err != nil {
		return err
	}
	s.sum.Traces, s.sum.TraceBytes = s.state.Traces()
	s.sum.Program = cmp.Or(s.program.Load(), s.sum.Program)
	s.sum.Finish(outcome)
	id := "finish-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	err = s.insist(ctx, "what is known over all ranks", func(ctx context.Context) error {
		return recordstream.Finish(ctx, s.stream, s.run, knownSubject(s.run), id, provenance.NewCollections(outcome, ad), s.sum)
	})
	if err != nil {
		return err
	}
	if err := s.waitForStore(ctx); err != nil {
		return err
	}
	s.removeStream(ctx)
	return nil
}

// How the end of a run deals with what is away: how long an attempt may take, and the
// pause after it.
const (
	attemptTime  = 30 * time.Second
	attemptPause = 200 * time.Millisecond
)

// insist calls f until it succeeds, as long as the reason why it does not may pass: a
// message bus or a shard that was killed is started again, and a store that is slow
// makes room in the stream.
func (s *serveRun) insist(ctx context.Context, what string, f func(context.Context) error) error {
	for said := false; ; said = true {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		err := f(attempt)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		passing := slices.ContainsFunc([]error{bus.ErrAway, bus.ErrNoService, bus.ErrFull, context.DeadlineExceeded}, func(kind error) bool { return errors.Is(err, kind) })
		if !passing {
			return fmt.Errorf("%s: %w", what, err)
		}
		if !said {
			s.log.Warn("the end of the run waits for "+what, "error", err)
		}
		if err := sleep(ctx, attemptPause); err != nil {
			return err
		}
	}
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
// analyzers judge.
func (s *serveRun) models(o *summary.Outcome, learned map[uint32]outlier.Model) *analyzer.Models {
	models := analyzer.NewModels(outlier.NewRules(s.judging().Config))
	for _, f := range o.Functions {
		models.Add(&f.FunctionStats, learned[uint32(f.ID)])
	}
	return models
}

// judging is how analyzers judge.
type judging struct {
	outlier.Config
	Inclusive bool `json:"inclusive"`
}

// judging is how the analyzers of the run judge.
func (s *serveRun) judging() judging {
	for _, n := range s.params.Report().Nodes {
		how := judging{Config: analyzer.Default().Outlier}
		if json.Unmarshal([]byte(n.Settings), &how) == nil {
			return how
		}
	}
	return judging{Config: analyzer.Default().Outlier}
}

// storeEnd ends the run in the store and in its directory.
func (s *serveRun) storeEnd(ctx context.Context, info json.RawMessage) error {
	final := new(provdb.Info)
	if err := json.Unmarshal(info, final); err != nil {
		return err
	}
	issues, err := s.keeper.FindIssues(ctx, final)
	if err != nil {
		return err
	}
	final.SetIssues(issues)
	if err := s.keeper.End(ctx, final); err != nil {
		return err
	}
	s.final = final
	return s.keeper.Dir.RemoveSpool()
}

// tellEnd says what came of the run, when all parts of this process have ended:
// the database has its size only then.
func (s *serveRun) tellEnd() error {
	if s.final == nil {
		return nil
	}
	s.final.SetSize(s.keeper.Size())
	if err := s.keeper.Dir.WriteInfo(s.final); err != nil {
		return err
	}
	return s.env.show(false, nil, func(w io.Writer) { printSummary(w, s.final, s.flags.out) })
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
	if s.flags.url != "" { // which the run directory tells: it may hold a password, and command lines can be seen
		args = append(args, "--nats-token-file", s.flags.tokenFile, "--nats-creds", s.flags.creds, "--nats-ca", s.flags.ca, "--nats-cert", s.flags.cert, "--nats-key", s.flags.key)
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--"+supervise.Flag)...) //nolint:gosec // this very program
	cmd.Stderr = s.env.Stderr
	cmd.Env = s.env.Environ
	leash, err := cmd.StdinPipe() // ends with this process, however that ends
	if err != nil {
		return err
	}
	cmd.Cancel = leash.Close
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}

// closeEnded closes a run whose process with the store was killed when the run had ended,
// but before the database was closed and measured. It reports whether there is one, which
// has nothing left to do then.
func (s *serveRun) closeEnded(ctx context.Context) (bool, error) {
	if !s.flags.has(roleStore) || s.flags.force || s.flags.store != "" {
		return false, nil
	}
	final, err := rundir.ReadInfo(s.flags.out)
	if err != nil || !final.Online || final.State != provdb.Finished || final.RecordBytes > 0 {
		return false, nil //nolint:nilerr // there is no run yet
	}
	if c, err := remotestore.Open(ctx, rundir.Owner(s.flags.out)); err == nil {
		return false, c.Close() // somebody is at work there
	}
	k, err := rundir.Reopen(ctx, s.store)
	if err != nil {
		return false, err
	}
	if err := errors.Join(k.Close(), k.Dir.RemoveSpool()); err != nil {
		return false, err
	}
	if s.flags.has(roleParams) { // statistics that wait on disk
		if err := s.openSender(); err != nil { //nolint:contextcheck // what it starts ends with close
			return false, err
		}
		if err := s.closeSender(ctx); err != nil {
			return false, err
		}
	}
	s.keeper, s.final = k, final
	return true, s.tellEnd()
}
