package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/judge/peers"
	"github.com/chimbuko/chimbuko/internal/online/bus"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/online/recordstream"
	"github.com/chimbuko/chimbuko/internal/online/summary"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/remotestore"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// runParams runs the parameter server. Its first shard ends the run when all analyzers have
// reviewed.
func (s *server) runParams(ctx context.Context) error {
	if s.cfg.Shard > 0 {
		return s.params.Run(ctx)
	}
	live, stop := context.WithCancel(ctx)
	defer stop()
	var statistics sync.WaitGroup
	statistics.Go(func() { s.sendStatistics(live) })
	statistics.Go(func() { s.storePaths(live) })
	statistics.Go(func() { s.storePeers(live) })
	statistics.Go(func() { s.storeCollectives(live) })
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

// closeSender waits up to StatsFlush until all statistics are delivered.
func (s *server) closeSender(ctx context.Context) error {
	if s.sender == nil {
		return nil
	}
	flush, cancel := context.WithTimeout(ctx, s.cfg.StatsFlush)
	defer cancel()
	return s.sender.Close(flush)
}

// conclude stores the run-level data, which ends the run.
func (s *server) conclude(ctx context.Context) error {
	var learned map[uint32]summary.Learned
	err := s.retry(ctx, "the models of all shards", func(ctx context.Context) (err error) {
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
	if s.cfg.SaveModel != "" {
		if err := rundir.SaveModels(s.cfg.SaveModel, models); err != nil {
			return err
		}
	}
	ad, err := models.ADModels()
	if err != nil {
		return err
	}
	outcome.Changes, outcome.Modes = models.Changes(), models.Modes()
	if err := s.retry(ctx, "the stream of records", s.openStream); err != nil {
		return err
	}
	if err := s.salvage(ctx, models, outcome); err != nil {
		return err
	}
	s.info.Traces, s.info.TraceBytes = s.state.Traces()
	s.info.Program = cmp.Or(s.program.Load(), s.info.Program)
	s.info.Finish(outcome)
	id := messageID("finish", time.Now())
	all := provenance.NewCollections(outcome, ad)
	all.Peers = peers.OfRun(outcome)
	err = s.retry(ctx, "the run-level data", func(ctx context.Context) error {
		return recordstream.Finish(ctx, s.stream, s.run, recordstream.RunSubject(s.run), id, all, s.info)
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

// The time limit of an attempt at the end of a run, and the pause after it.
const (
	attemptTime  = 30 * time.Second
	attemptPause = 200 * time.Millisecond
)

// retry retries f while its error is temporary, such as that of a message bus or a shard
// that is restarted, of a full stream, or of a cluster that elects a leader.
func (s *server) retry(ctx context.Context, what string, f func(context.Context) error) error {
	for outage := (wait.Outage{}); ; {
		attempt, cancel := context.WithTimeout(ctx, attemptTime)
		err := f(attempt)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !bus.IsTemporary(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if lasted, log := outage.Failed(err.Error(), time.Now()); log {
			s.log.Warn("waiting for "+what, "error", err, "for_seconds", lasted.Seconds())
		}
		if err := wait.Sleep(ctx, attemptPause); err != nil {
			return err
		}
	}
}

// The time between checks whether the store has all records: at first and at most.
const (
	storePoll    = 5 * time.Millisecond
	storePollMax = 20 * time.Millisecond
)

// waitForStore waits until the store has all records. A server that was killed after it had sent
// the end of the run sends it again, but the store ends with the first message.
func (s *server) waitForStore(ctx context.Context) error {
	s.hurryStore(ctx)
	for outage, pause := (wait.Outage{}), storePoll; ; pause = min(2*pause, storePollMax) {
		left, _, err := s.stream.Pending(ctx)
		if err == nil && left == 0 || s.hasFinished() {
			return nil
		}
		if lasted, log := outage.Failed("", time.Now()); log {
			s.log.Warn("waiting for the store to write the records in the stream", "messages", left, "error", err, "for_seconds", lasted.Seconds())
		}
		if err := wait.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// models returns the models of all functions, with the settings of the analyzers.
func (s *server) models(o *summary.Outcome, learned map[uint32]summary.Learned) *analyzer.Models {
	models := analyzer.NewModels(outlier.NewRules(s.judging().Config))
	for _, f := range o.Functions {
		l := learned[uint32(f.ID)]
		models.Add(&f.FunctionStats, &l)
	}
	return models
}

// judging returns the settings of the analyzers of the run.
func (s *server) judging() node.Judging {
	for _, settings := range s.state.Settings() {
		how := node.Judging{Config: analyzer.Default().Outlier}
		if json.Unmarshal([]byte(settings), &how) == nil {
			return how
		}
	}
	return node.Judging{Config: analyzer.Default().Outlier}
}

// storeEnd marks the run as finished in the store and in its directory.
func (s *server) storeEnd(ctx context.Context, info json.RawMessage) error {
	final := new(provdb.Info)
	if err := json.Unmarshal(info, final); err != nil {
		return err
	}
	findings, err := s.keeper.FindFindings(ctx, final)
	if err != nil {
		return err
	}
	final.SetFindings(findings)
	if err := s.keeper.End(ctx, final); err != nil {
		return err
	}
	s.final = final
	return s.keeper.Dir.RemoveSpool()
}

// records is the source of the store.
type records struct {
	*bus.Consumer
	server *server
}

// Ack acknowledges messages. The process with the message bus of the run ends as soon as run.json is final, so then Ack does
// not wait for a connection. Nobody needs the acknowledgment any more.
func (r records) Ack(ctx context.Context, m bus.Message) error {
	if r.server.final == nil || r.server.cfg.Bus.URL != "" {
		return r.Consumer.Ack(ctx, m)
	}
	if err := r.TryAck(ctx, m); err != nil {
		r.server.log.Debug("cannot acknowledge the end of the run", "error", err)
	}
	return nil
}

// printEnd prints the result of the run after the store was closed, when its size is final.
func (s *server) printEnd() error {
	if s.final == nil {
		return nil
	}
	s.final.SetSize(s.keeper.Size())
	if err := s.keeper.Dir.WriteInfo(s.final); err != nil {
		return err
	}
	return s.cfg.PrintResults(s.final)
}

// sendStatistics sends packets until ctx ends, and then a last one.
func (s *server) sendStatistics(ctx context.Context) {
	for more := true; more; {
		more = wait.Sleep(ctx, s.cfg.StatsPeriod) == nil
		if s.sender == nil {
			s.state.Summary((*summary.Live).Discard)
			continue
		}
		var packet *legacy.Packet
		s.state.Summary(func(l *summary.Live) { packet = legacy.NewPacket(l, s.cfg.StatsSchema, time.Now()) })
		if !packet.Empty() {
			s.sender.Send(packet.Encode())
		}
	}
}

// startShards runs the processes of the other shards, and restarts them when they die.
func (s *server) startShards(ctx context.Context, g *errgroup.Group) {
	for i := 1; i < s.cfg.Shards; i++ {
		g.Go(func() error {
			for ctx.Err() == nil {
				err := s.runShard(ctx, i)
				if ctx.Err() != nil {
					return nil
				}
				s.log.Error("restarting a shard of the parameter server that ended", "shard", i, "error", err)
				_ = wait.Sleep(ctx, time.Second) // the loop checks ctx
			}
			return nil
		})
	}
}

func (s *server) runShard(ctx context.Context, shard int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{
		"serve", "--out", s.cfg.Store.Dir, "--name", s.run, "--roles", RoleParams,
		"--shard", strconv.Itoa(shard), "--shards", strconv.Itoa(s.cfg.Shards),
		"--snapshot", s.cfg.Snapshot.String(),
	}
	if s.cfg.LoadModel != "" {
		args = append(args, "--load-model", s.cfg.LoadModel, fmt.Sprintf("--freeze-model=%t", s.cfg.Frozen))
	}
	if s.cfg.Bus.URL != "" { // it may contain a password, and command lines are public: the run directory has it
		args = append(args, "--nats-token-file", s.cfg.Bus.TokenFile, "--nats-creds", s.cfg.Bus.Credentials, "--nats-ca", s.cfg.Bus.CA,
			"--nats-cert", s.cfg.Bus.Cert, "--nats-key", s.cfg.Bus.Key)
	}
	cmd := exec.CommandContext(ctx, program, append(args, s.cfg.ShardArgs...)...) //nolint:gosec // this program
	cmd.Stderr = s.cfg.Stderr
	cmd.Env = s.cfg.Environ
	leash, err := cmd.StdinPipe() // ends with this process, however that ends
	if err != nil {
		return err
	}
	cmd.Cancel = leash.Close
	cmd.WaitDelay = 5 * time.Second
	return cmd.Run()
}

// closeEnded closes the database of a finished run whose process was killed before it
// could. It returns true if so; no work is left then.
func (s *server) closeEnded(ctx context.Context) (bool, error) {
	if !s.cfg.has(RoleStore) || s.cfg.Store.Force || s.cfg.Store.Store != "" {
		return false, nil
	}
	final, err := runfiles.ReadInfo(s.cfg.Store.Dir)
	if err != nil || !final.Online || final.State != provdb.Finished || final.RecordBytes > 0 {
		return false, nil //nolint:nilerr // no run yet
	}
	if c, err := remotestore.Open(ctx, rundir.Owner(s.cfg.Store.Dir)); err == nil {
		return false, c.Close() // another process has it
	}
	k, err := rundir.Reopen(ctx, &s.cfg.Store)
	if err != nil {
		return false, err
	}
	if err := errors.Join(k.Close(), k.Dir.RemoveSpool()); err != nil {
		return false, err
	}
	if s.cfg.has(RoleParams) { // statistics that wait on disk
		if err := s.openSender(); err != nil { //nolint:contextcheck // what it starts ends with close
			return false, err
		}
		if err := s.closeSender(ctx); err != nil {
			return false, err
		}
	}
	s.keeper, s.final = k, final
	return true, s.printEnd()
}
