package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chimbuko/chimbuko/internal/online/supervise"
	"github.com/chimbuko/chimbuko/internal/show/viewer"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/rundir"
)

// crew are the processes that work on a run beside its program: services and
// analyzers. Those that die are started again.
type crew struct {
	env   *Env
	dir   string // of the run, absolute
	shown string // the same as it was given
	quiet bool
	group *supervise.Group
	ctx   context.Context // ends when all are to end
	end   context.CancelFunc

	failed chan struct{} // gets something when a member has ended for good, and not well

	services *member
	others   []*member // the analyzers
}

// member is one of a crew, by whatever process it is done.
type member struct {
	name, what string
	args       []string

	mu    sync.Mutex
	child *supervise.Child // the newest
	words []string         // that each is told

	ended chan struct{} // closed when it has ended for good
	err   error         // why it did not end well
}

// newCrew makes the directory of a run for it, unless it is there and to be kept.
func newCrew(env *Env, flags *keeperFlags, quiet bool) (*crew, error) {
	if _, err := rundir.Create(flags.out, flags.force); err != nil {
		return nil, err
	}
	return joinCrew(env, flags.out, flags.store, quiet)
}

// joinCrew returns a crew for the run in a directory that is there, and in a store if
// that is not in the directory.
func joinCrew(env *Env, out, store string, quiet bool) (*crew, error) {
	c := &crew{env: env, shown: out, quiet: quiet, failed: make(chan struct{}, 1)}
	var err error
	if c.dir, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	temporary := filepath.Join(c.dir, "spool")
	for _, dir := range []string{c.traces(), rundir.Logs(c.dir), temporary} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	environ := childEnviron(env.Environ, temporary)
	if store != "" { // there may be a password in it, and all can see command lines
		environ = append(environ, envName("store")+"="+store)
	}
	if c.group, err = supervise.New(rundir.Logs(c.dir), environ, nil); err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

func (c *crew) traces() string { return rundir.Traces(c.dir) }

// say tells a person something.
func (c *crew) say(format string, args ...any) {
	if !c.quiet {
		c.warn(format, args...)
	}
}

// warn tells a person something even if they want to hear little.
func (c *crew) warn(format string, args ...any) {
	fmt.Fprintf(c.env.Stderr, "chimbuko: "+format+"\n", args...)
}

// stop ends all processes. It may be called twice.
func (c *crew) stop() {
	c.end()
	c.group.Stop()
}

// How often a member of the crew may die in a row, and after how long it is a new row.
const (
	mostDeaths = 5
	longLife   = time.Minute
	restart    = time.Second
)

// start starts a member, and starts it again whenever it dies.
func (c *crew) start(m *member) error {
	m.ended = make(chan struct{})
	if err := m.start(c); err != nil {
		return err
	}
	go m.live(c)
	return nil
}

// start starts a process for the member.
func (m *member) start(c *crew) error {
	child, err := c.group.Start(c.ctx, m.name, m.what, m.args...)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.child = child
	for _, w := range m.words {
		_ = child.Tell(w) // it may have ended, then the next is told
	}
	return nil
}

// live has the member work until it has ended, by as many processes as it takes.
func (m *member) live(c *crew) {
	defer close(m.ended)
	if m.err = m.work(c); m.err != nil {
		if c.ctx.Err() == nil {
			c.warn("%v", m.err)
		}
		select {
		case c.failed <- struct{}{}:
		default: // another one did before
		}
	}
}

// work returns when the member has ended, and why if it did not end well.
func (m *member) work(c *crew) error {
	born, deaths := time.Now(), 0
	for {
		child := m.current()
		<-child.Ended()
		if child.Err() == nil || c.ctx.Err() != nil {
			return child.Err()
		}
		if time.Since(born) > longLife {
			deaths = 0
		}
		if deaths++; deaths > mostDeaths {
			return fmt.Errorf("%s died %d times and is given up, which does not touch the program; its log ends with\n%s", m.what, deaths, supervise.LastLines(child.Log, oneLine))
		}
		c.warn("%v; it is started again, and nothing is lost", &supervise.Failure{Child: child, Err: child.Err()})
		if err := sleep(c.ctx, restart); err != nil {
			return err
		}
		born = time.Now()
		if err := m.start(c); err != nil {
			return err
		}
	}
}

func (m *member) current() *supervise.Child {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.child
}

// tell tells the process of the member something, and those that come after it.
func (m *member) tell(word string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.words = append(m.words, word)
	_ = m.child.Tell(word) // it may have ended, then the next is told
}

// startServices starts the services and returns how to reach them.
func (c *crew) startServices(ctx context.Context, args []string) (*rundir.Services, error) {
	c.services = &member{name: "serve", what: "the process of the services", args: append([]string{"serve"}, args...)}
	child, err := c.group.Start(ctx, c.services.name, c.services.what, c.services.args...)
	if err != nil {
		return nil, err
	}
	services, err := c.awaitServices(ctx, child)
	if err != nil {
		return nil, err
	}
	c.services.child, c.services.ended = child, make(chan struct{})
	go c.services.live(c)
	return services, nil
}

// startPatience is how long processes may take to start.
const startPatience = 30 * time.Second

// awaitServices waits until a process tells how to reach the services.
func (c *crew) awaitServices(ctx context.Context, child *supervise.Child) (*rundir.Services, error) {
	for begin := time.Now(); ; {
		s, err := rundir.ReadServices(c.dir)
		if err == nil && s.PID == child.PID() && s.Web != "" {
			return s, nil
		}
		select {
		case <-child.Ended():
			return nil, fmt.Errorf("the services could not be started; their log ends with\n%s", supervise.LastLines(child.Log, oneLine))
		default:
		}
		if time.Since(begin) > startPatience {
			return nil, fmt.Errorf("the services did not start within %v; their log ends with\n%s", startPatience, supervise.LastLines(child.Log, oneLine))
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// startAnalyzer starts an analyzer; node is its name, "" for the usual one.
func (c *crew) startAnalyzer(name, node string, args ...string) {
	own := []string{"ad", "--run-dir=" + c.dir, "--spool=" + filepath.Join(c.dir, "spool", name)}
	if node != "" {
		own = append(own, "--node="+node)
	}
	m := &member{name: name, what: "the analyzer", args: append(own, args...)}
	if node != "" {
		m.what += " " + node
	}
	if err := c.start(m); err != nil {
		c.warn("%v", err)
		m.err = err
		close(m.ended)
	}
	c.others = append(c.others, m)
}

// greet tells what is there to see.
func (c *crew) greet(s *rundir.Services) {
	if !isTerminal(c.env.Stderr) { // what is told may be read by others, in the log of a job
		c.say("the run is in %s; chimbuko view %s prints the address of its page", c.shown, c.shown)
		return
	}
	c.say("the run is in %s, its page at %s", c.shown, viewer.WithToken(s.Web, s.Secret))
	if line := viewer.Tunnel(c.env.Environ, s.Host, s.Web); line != "" {
		c.say("from your own machine it is there after: %s", line)
	}
}

// tellVariables tells what the program needs that is started by somebody else, and
// keeps it in a file.
func (c *crew) tellVariables(t tauVariables) {
	var b strings.Builder
	for _, v := range t {
		fmt.Fprintf(&b, "export %s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
	}
	text := b.String()
	path := filepath.Join(c.dir, "tau.env")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // meant to be read by all
		c.warn("%v", err)
	}
	fmt.Fprint(c.env.Stdout, text)
	c.say("start the program with these variables, as after: . %s", path)
}

// attend waits until the run has ended by itself, or somebody ends it.
func (c *crew) attend(signals *signalCatcher) error {
	select {
	case <-c.services.ended:
	case <-signals.c:
	}
	signals.settle()
	c.conclude(signals, nil)
	c.report(true)
	return nil
}

// conclude waits until the run has ended, after its program has: end is how; nil if it
// is not known.
func (c *crew) conclude(signals *signalCatcher, end *provdb.Program) {
	if end != nil {
		if text, err := json.Marshal(end); err == nil {
			c.services.tell(string(text))
		}
	}
	for _, m := range c.others {
		m.tell(over)
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		for _, m := range c.others {
			<-m.ended
		}
		<-c.services.ended
	}()
	c.awaitReview(signals, all)
}

// awaitReview returns when done is closed. A signal ends the processes before that, and
// leaves the review for later.
func (c *crew) awaitReview(signals *signalCatcher, done <-chan struct{}) {
	late := time.NewTimer(concludeQuietly)
	defer late.Stop()
	for {
		select {
		case <-done:
			return
		case <-late.C:
			c.say("what was kept is judged once more with all that is known; Ctrl-C leaves that for later")
		case <-c.failed: // the others would wait for ever
			c.stop()
		case s := <-signals.c:
			if signals.repeats(s) {
				continue
			}
			select {
			case <-done: // nothing is left to end
				return
			default:
			}
			c.warn("ending without the review")
			c.stop()
			<-done
			return
		}
	}
}

// concludeQuietly is how long the end may take without a word.
const concludeQuietly = 3 * time.Second

// report tells what came of the run, and removes traces that are not needed any more.
func (c *crew) report(keepTraces bool) {
	info, err := rundir.ReadInfo(c.dir)
	if err != nil {
		c.warn("what came of the run is not known: %v", err)
		return
	}
	if info.State != provdb.Finished {
		c.warn("the run is incomplete; chimbuko finish %s completes it", c.shown)
		return
	}
	if info.Totals.Ranks == 0 {
		c.warn("no trace was written. Is TAU in the program? If not: chimbuko run -- tau_exec -adios2_trace COMMAND")
	} else if !c.quiet {
		c.summarize(info)
	}
	if keepTraces || len(info.Incomplete) > 0 {
		return
	}
	if err := os.RemoveAll(c.traces()); err != nil {
		c.warn("the traces could not be removed: %v", err)
	} else if info.TraceBytes > 0 {
		c.say("the traces (%s) were removed; --keep-traces keeps them", sizeText(info.TraceBytes))
	}
}

// summarize prints the summary beside the output of the program.
func (c *crew) summarize(info *provdb.Info) {
	fmt.Fprintln(c.env.Stderr)
	printSummary(c.env.Stderr, info, c.shown)
}
