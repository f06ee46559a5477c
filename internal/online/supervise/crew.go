package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/base/wait"
	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// Config describes a run to supervise.
type Config struct {
	Dir     string   // run directory, as the user gave it
	Store   string   // URL of the server that keeps the records; "" keeps them in Dir
	Replace bool     // whether a run in Dir may be replaced
	Quiet   bool     // report problems only
	Environ []string // environment of this process

	Stdin          io.Reader // of the program; nil is that of this process
	Stdout, Stderr io.Writer
	Terminal       bool // whether Stderr is a terminal

	// Summarize prints the results of a finished run to Stderr.
	Summarize func(*provdb.Info)
}

// Crew runs the processes that analyze a program: services and analyzers. It restarts
// those that die.
type Crew struct {
	Config
	dir   string // absolute path of the run directory
	group *group
	ctx   context.Context // ends when all processes are to end
	end   context.CancelFunc

	failed chan struct{} // receives when a member gives up

	services  *Member
	analyzers []*Member
}

// Member is a process of a Crew, with those that replace it.
type Member struct {
	name, description string
	args              []string

	mu    sync.Mutex
	child *child   // the newest
	words []string // sent to each child

	ended chan struct{} // closed when no process is left and none will follow
	err   error         // reason for giving up
}

// Ended returns a channel that is closed when the member has ended and will not be restarted.
func (m *Member) Ended() <-chan struct{} { return m.ended }

// NewCrew makes the run directory and returns a Crew without processes. The caller
// must call Stop.
func NewCrew(cfg Config) (*Crew, error) {
	if _, err := rundir.Create(cfg.Dir, cfg.Replace); err != nil {
		return nil, err
	}
	return joinCrew(cfg)
}

// joinCrew returns a Crew for an existing run directory.
func joinCrew(cfg Config) (*Crew, error) {
	c := &Crew{Config: cfg, failed: make(chan struct{}, 1)}
	var err error
	if c.dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	temporary := filepath.Join(c.dir, "spool")
	for _, dir := range []string{c.Traces(), runfiles.Logs(c.dir), temporary} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	environ := childEnviron(cfg.Environ, temporary)
	if cfg.Store != "" { // it may hold a password, and command lines are public
		environ = append(environ, EnvPrefix+"STORE="+cfg.Store)
	}
	if c.group, err = newGroup(runfiles.Logs(c.dir), environ); err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// EnvPrefix is the prefix of environment variables with settings.
const EnvPrefix = "CHIMBUKO_"

// childEnviron returns the environment without the settings, which child processes get as
// flags, and with another directory for temporary files.
func childEnviron(environ []string, temporary string) []string {
	environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, EnvPrefix) || strings.HasPrefix(v, "TMPDIR=")
	})
	return append(environ, "TMPDIR="+temporary)
}

// Path returns the absolute path of the run directory.
func (c *Crew) Path() string { return c.dir }

// Traces returns the directory for the traces of the program.
func (c *Crew) Traces() string { return runfiles.Traces(c.dir) }

// Printf prints a line for people, unless the Crew is quiet.
func (c *Crew) Printf(format string, args ...any) {
	if !c.Quiet {
		c.warn(format, args...)
	}
}

// warn prints a line for people.
func (c *Crew) warn(format string, args ...any) {
	fmt.Fprintf(c.Stderr, "chimbuko: "+format+"\n", args...)
}

// Stop ends all processes. It may be called more than once.
func (c *Crew) Stop() {
	c.end()
	c.group.stop()
}

// A member that dies more than maxFailures times in a row gives up. A process that lived for
// failureWindow resets the count.
const (
	maxFailures   = 5
	failureWindow = time.Minute
	restart       = time.Second // pause before the next process
)

// Start starts a subcommand of this program, and restarts it whenever it dies. name is the name of
// its log; what describes it.
func (c *Crew) Start(name, what string, args ...string) (*Member, error) {
	m := &Member{name: name, description: what, args: args, ended: make(chan struct{})}
	if err := m.start(c); err != nil {
		return nil, err
	}
	go m.live(c)
	return m, nil
}

// start starts a process for the member.
func (m *Member) start(c *Crew) error {
	child, err := c.group.start(c.ctx, m.name, m.description, m.args...)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.child = child
	for _, w := range m.words {
		_ = child.send(w) // if it has ended, the next one gets the words
	}
	return nil
}

// live restarts the member until it ends for good.
func (m *Member) live(c *Crew) {
	defer close(m.ended)
	if m.err = m.work(c); m.err != nil {
		if c.ctx.Err() == nil {
			c.warn("%v", m.err)
		}
		select {
		case c.failed <- struct{}{}:
		default: // another one failed before
		}
	}
}

// work returns when the member has ended for good, with an error unless it succeeded.
func (m *Member) work(c *Crew) error {
	born, deaths := time.Now(), 0
	for {
		child := m.current()
		<-child.ended
		if child.err == nil || c.ctx.Err() != nil {
			return child.err
		}
		if _, err := os.Stat(runfiles.Logs(c.dir)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s ended because the run directory %s was removed; the program continues", m.description, c.Dir)
		}
		if time.Since(born) > failureWindow {
			deaths = 0
		}
		if deaths++; deaths > maxFailures {
			return fmt.Errorf("%s died %d times and is not restarted; the program continues; last lines of its log:\n%s",
				m.description, deaths, lastLines(child.log))
		}
		c.warn("%s; restarting it, %s", child.failure(), m.loss())
		if err := wait.Sleep(c.ctx, restart); err != nil {
			return err
		}
		born = time.Now()
		if err := m.start(c); err != nil {
			return err
		}
	}
}

// loss describes the data that a restart of the member loses.
func (m *Member) loss() string {
	if slices.Contains(m.args, engineFlag+engineSST) {
		return "steps of live streams are lost until it is connected again"
	}
	return "nothing is lost"
}

func (m *Member) current() *child {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.child
}

// send sends a line to the process of the member and to those that replace it.
func (m *Member) send(word string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.words = append(m.words, word)
	_ = m.child.send(word) // if it has ended, the next one gets the word
}

// StartServices starts the services, reports the address of their page, and returns their
// addresses.
func (c *Crew) StartServices(ctx context.Context, args ...string) (*runfiles.Services, error) {
	args = append([]string{"serve", "--out=" + c.dir, "--linger=0s"}, args...)
	m := &Member{name: "serve", description: "the services", args: args, ended: make(chan struct{})}
	child, err := c.group.start(ctx, m.name, m.description, m.args...)
	if err != nil {
		return nil, err
	}
	services, err := c.awaitServices(ctx, child)
	if err != nil {
		return nil, err
	}
	m.child, c.services = child, m
	go m.live(c)
	c.printAddress(services)
	return services, nil
}

// startTimeout is how long the services may take to start.
const startTimeout = 30 * time.Second

// awaitServices waits until a process has published the addresses of the services.
func (c *Crew) awaitServices(ctx context.Context, child *child) (*runfiles.Services, error) {
	late := time.After(startTimeout)
	for {
		s, err := runfiles.ReadServices(c.dir)
		if err == nil && s.PID == child.pid() && s.Web != "" {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-child.ended:
			return nil, fmt.Errorf("cannot start the services; last lines of their log:\n%s", lastLines(child.log))
		case <-late:
			return nil, fmt.Errorf("the services did not start within %v; last lines of their log:\n%s", startTimeout, lastLines(child.log))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// StartAnalyzer starts an analyzer. name is the name of its log and spool, node its name for the
// services; with "" the analyzer chooses it.
func (c *Crew) StartAnalyzer(name, node string, args ...string) {
	own, what := []string{"ad", "--run-dir=" + c.dir, "--spool=" + filepath.Join(c.dir, "spool", name)}, "the analyzer"
	if node != "" {
		own, what = append(own, "--node="+node), what+" "+node
	}
	m, err := c.Start(name, what, append(own, args...)...)
	if err != nil {
		c.warn("%v", err)
		return
	}
	c.analyzers = append(c.analyzers, m)
}

// printAddress reports the directory of the run and the address of its page.
func (c *Crew) printAddress(s *runfiles.Services) {
	if !c.Terminal { // keep the token out of files that others may read
		c.Printf("the run is in %s; chimbuko view %s prints the address of its page", c.Dir, c.Dir)
		return
	}
	c.Printf("the run is in %s, its page at %s", c.Dir, viewer.WithToken(s.Web, s.Secret))
	if line := viewer.Tunnel(c.Environ, s.Host, s.Web); line != "" {
		c.Printf("to open it from your own machine, run: %s", line)
	}
}

// Conclude waits until the analysis of an ended program has ended. A signal ends it without the
// review.
func (c *Crew) Conclude() {
	signals := catchSignals()
	defer signals.stop()
	c.conclude(signals, nil)
}

// conclude notifies all processes that the program has ended, and waits until they have ended. end
// may be nil.
func (c *Crew) conclude(signals *signalCatcher, end *provdb.Program) {
	if end != nil {
		if text, err := json.Marshal(end); err == nil {
			c.services.send(string(text))
		}
	}
	for _, m := range c.analyzers {
		m.send(node.ProgramEnded)
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		for _, m := range c.analyzers {
			<-m.ended
		}
		<-c.services.ended
	}()
	c.awaitReview(signals, all)
}

// awaitReview returns when done is closed. A signal stops the processes before that, and
// postpones the review.
func (c *Crew) awaitReview(signals *signalCatcher, done <-chan struct{}) {
	late := time.NewTimer(quietTime)
	defer late.Stop()
	for {
		select {
		case <-done:
			return
		case <-late.C:
			c.Printf("reviewing records with the final model; Ctrl-C to postpone")
		case <-c.failed: // the others would wait forever
			c.Stop()
		case s := <-signals.c:
			if signals.repeats(s) {
				continue
			}
			select {
			case <-done: // nothing is left to stop
				return
			default:
			}
			c.warn("ending without the review")
			c.Stop()
			<-done
			return
		}
	}
}

// quietTime is the time that the end may take before it is reported.
const quietTime = 3 * time.Second

// report prints the results of the run, and removes its traces if they are not needed.
func (c *Crew) report(keepTraces bool) {
	info, err := runfiles.ReadInfo(c.dir)
	if err != nil {
		c.warn("cannot read the run's result: %v", err)
		return
	}
	if info.State != provdb.Finished {
		c.warn("the run is incomplete; chimbuko finish %s completes it", c.Dir)
		return
	}
	if info.Totals.Ranks == 0 {
		c.warn("the program wrote no trace; if it is not linked with TAU: chimbuko run -- tau_exec -adios2_trace COMMAND")
	} else if !c.Quiet {
		fmt.Fprintln(c.Stderr)
		c.Summarize(info)
	}
	if keepTraces || len(info.Incomplete) > 0 {
		return
	}
	files, _ := filepath.Glob(filepath.Join(runfiles.EscapeGlob(c.Traces()), "*.bp")) // streams have none
	if err := os.RemoveAll(c.Traces()); err != nil {
		c.warn("cannot remove the traces: %v", err)
	} else if len(files) > 0 {
		c.Printf("removed the traces (%.1f MB); --keep-traces keeps them", float64(info.TraceBytes)/1e6)
	}
}
