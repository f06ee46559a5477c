package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/testkit/pgtest"
)

// browser keeps cookies.
type browser struct {
	t      testing.TB
	client http.Client
	at     string // of the page, without the token
}

// browse visits the page at an address that was printed.
func browse(t testing.TB, address string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, client: http.Client{Jar: jar}}
	b.at, _, _ = strings.Cut(address, "?")
	if code, body := b.get("?" + strings.TrimPrefix(address, b.at+"?")); code != http.StatusOK ||
		!strings.Contains(body, "<title>Chimbuko</title>") {
		t.Fatalf("the page at %s: %d %s", address, code, body)
	}
	return b
}

// get returns a path of the page, with status 0 if there is no answer.
func (b *browser) get(path string) (code int, body string) {
	b.t.Helper()
	return b.send(http.MethodGet, path, "")
}

func (b *browser) send(method, path, body string) (code int, answer string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.at+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := b.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// fetch decodes the JSON at a path.
func fetch[T any](b *browser, path string) (v T) {
	b.t.Helper()
	code, body := b.get(path)
	if err := json.Unmarshal([]byte(body), &v); err != nil || code != http.StatusOK {
		b.t.Fatalf("%s: %d %s: %v", path, code, body, err)
	}
	return v
}

var visitPattern = regexp.MustCompile(`(?m)^http://127\.0\.0\.1:\d+/\?token=\w+$`)

// address waits until a process has printed the address of a page, in a line of its
// own.
func (p *process) address() string {
	p.t.Helper()
	var found string
	eventually(p.t, p.name+" prints an address", func() error {
		if found = visitPattern.FindString(p.stdout.String()); found != "" {
			return nil
		}
		if !p.running() && visitPattern.FindString(p.stdout.String()) == "" {
			p.t.Fatalf("%s ended and printed no address:\n%s", p.name, tail(p.stderr.String()))
		}
		return fmt.Errorf("only %s", p.stdout.String())
	})
	return found
}

// interrupt ends a process as Ctrl-C does, which must be a good end.
func (p *process) interrupt() {
	p.t.Helper()
	p.signal(syscall.SIGINT)
	p.succeed()
}

// analyzed is a run directory of a recording.
func analyzed(t testing.TB, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "done")
	must(t, append([]string{"analyze", recorded(t, "gpu-BP5").dir(), "--out", dir}, args...)...)
	return dir
}

// port is a free one.
func port(t testing.TB) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was only to get a number
	return l.Addr().String()
}

func TestViewOfFinishedRunRequiresToken(t *testing.T) {
	t.Parallel()
	dir := analyzed(t)
	at := port(t)
	view := start(t, "view", dir, "--http", at)
	first := view.address()
	contains(t, view.stderr.String(), `run "done": finished, with`, "anomalies")
	if !strings.HasPrefix(first, "http://"+at+"/?token=") {
		t.Errorf("the address is %s", first)
	}
	stranger := &browser{t: t, at: "http://" + at + "/"}
	if code, body := stranger.get(""); code != http.StatusUnauthorized || !strings.Contains(body, "chimbuko view RUN") {
		t.Errorf("without the token: %d %s", code, body)
	}
	const run = "api/v1/runs/done"
	if code, body := stranger.get(run + "/overview"); code != http.StatusUnauthorized || !strings.Contains(body, `"error"`) {
		t.Errorf("without the token: %d %s", code, body)
	}
	b := browse(t, first)
	overview := fetch[api.Overview](b, run+"/overview")
	if overview.State != api.Finished || overview.Live || overview.Figures.Anomalies == 0 || len(overview.Findings) == 0 ||
		overview.Verdict.Sentence == "" {
		t.Errorf("the overview is %+v", overview)
	}
	if st := fetch[api.Status](b, run+"/pipeline"); st.Run.State != api.Finished || st.Totals.Calls == 0 || len(st.Wrong()) > 0 {
		t.Errorf("the pipeline is %+v", st)
	}

	key := overview.Findings[0].Key
	if code, body := b.send(http.MethodPut, run+"/labels/"+key, `{"state":"muted","note":"<script>known</script>"}`); code != http.StatusOK {
		t.Errorf("a label: %d %s", code, body)
	}
	view.interrupt()
	if code, body := b.get(run + "/overview"); code != 0 {
		t.Errorf("after the end: %d %s", code, body)
	}
	again := start(t, "view", dir, "--http", at)
	if second := again.address(); second != first {
		t.Errorf("%s is followed by %s", first, second)
	}
	labeled := func(b *browser, writable bool) {
		t.Helper()
		list := fetch[api.FindingList](b, run+"/findings")
		for _, finding := range list.Rows {
			if finding.Key == key && (finding.Label == nil || finding.Label.State != "muted" || finding.Label.Note != "<script>known</script>") {
				t.Errorf("the label is %+v", finding.Label)
			}
		}
		if list.Writable != writable {
			t.Errorf("labels can be set: %v", list.Writable)
		}
	}
	labeled(b, true)

	careful := browse(t, start(t, "view", dir, "--read-only").address())
	labeled(careful, false)
	if code, body := careful.send(http.MethodPut, run+"/labels/"+key, `{"state":"open","note":""}`); code != http.StatusForbidden {
		t.Errorf("a label on a page that only shows: %d %s", code, body)
	}
	labeled(b, true)
}

func TestViewOfRunningRunUsesItsServices(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3")
	services := s.services()
	serve.awaitLog("the page of the run is at " + services.Web + "/ (chimbuko view " + s.run + " prints it with its token)")
	ads := s.ads(r)
	replay := s.paused(r, 5)
	s.steps(6)

	other := start(t, "view", s.run)
	address := other.address()
	other.succeed()
	contains(t, other.stderr.String(), `run "run" is running`)
	if address != services.Web+"/?token="+services.Secret {
		t.Errorf("the address is %s", address)
	}
	contains(t, must(t, "status", s.run), "page: "+address)

	own := start(t, "view", s.run, "--http", "127.0.0.1:0") // a separate page
	through, direct := browse(t, own.address()), browse(t, address)
	if own.address() == address {
		t.Error("it has the address of the services")
	}
	const run = "api/v1/runs/run"
	for _, b := range []*browser{through, direct} {
		if st := fetch[api.Status](b, run+"/pipeline"); st.Run.State != api.Running || len(st.Nodes) != 3 {
			t.Errorf("the pipeline is %+v", st)
		}
		if o := fetch[api.Overview](b, run+"/overview"); o.State != api.Running || !o.Live {
			t.Errorf("the overview is %+v", o)
		}
	}

	// Restarted services have the same address, and accept the session of the browser.
	serve.kill()
	serve = s.serve("--ranks", "3")
	s.steps(12)
	if again := s.services(); again.Web != services.Web || again.Secret != services.Secret {
		t.Errorf("they were at %s and are at %s", services.Web, again.Web)
	}
	for _, b := range []*browser{direct, through} {
		eventually(t, "the page continues", func() error {
			code, body := b.get(run + "/overview")
			if code != http.StatusOK {
				return fmt.Errorf("%d %s", code, body)
			}
			return nil
		})
	}
	replay.resume()
	replay.succeed()
	succeed(append(ads, serve)...)
	contains(t, serve.stderr.String(), "chimbuko view "+s.run+" shows it again")
	if o := fetch[api.Overview](through, run+"/overview"); o.State != api.Finished || o.Live {
		t.Errorf("when the run has ended: %+v", o)
	}
	own.interrupt()
	ended := start(t, "view", s.run) // is where the page was
	if got := ended.address(); got != address {
		t.Errorf("the page of the run was at %s and is at %s", address, got)
	}
	if o := fetch[api.Overview](direct, run+"/overview"); o.State != api.Finished {
		t.Errorf("when the run has ended: %+v", o)
	}
}

func TestPageStaysAfterTheRun(t *testing.T) {
	t.Parallel()
	r := threeRanks(t)
	s := newScene(t)
	serve := s.serve("--ranks", "3", "--stay")
	services := s.services()
	b := browse(t, services.Web+"/?token="+services.Secret)
	succeed(append(s.ads(r), s.replay(r, "max"))...)
	serve.awaitLog("the page of the run remains at " + services.Web)
	if o := fetch[api.Overview](b, "api/v1/runs/run/overview"); o.State != api.Finished {
		t.Errorf("the overview is %+v", o)
	}
	serve.interrupt()
}

func TestViewReportsIncompleteRun(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	serve := s.serve("--ranks", "3")
	ads, last := s.allButLast(threeRanks(t))
	replay := s.replay(threeRanks(t), "0.5")
	s.steps(6)
	serve.kill()
	view := start(t, "view", s.run)
	b := browse(t, view.address())
	contains(t, view.stderr.String(), "incomplete: it stopped early", "chimbuko finish "+s.run)
	if st := fetch[api.Status](b, "api/v1/runs/run/pipeline"); st.Run.State != api.Incomplete || len(st.Wrong()) != 1 {
		t.Errorf("the pipeline is %+v", st)
	}
	view.interrupt()
	serve = s.serve("--ranks", "3") // continues with it
	replay.succeed()
	succeed(append(ads, last(), serve)...)
}

func TestViewOfServerKeepsNoLabels(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t).Database(t)
	dir := analyzed(t, "--store", server)
	view := start(t, "view", server, "--run", "done")
	b := browse(t, view.address())
	contains(t, view.stderr.String(), "cannot store notes on findings without a run directory")
	if list := fetch[api.FindingList](b, "api/v1/runs/done/findings"); list.Writable || len(list.Rows) == 0 {
		t.Errorf("the findings are %+v", list)
	}
	view.interrupt()
	_, stderr, code := run(t, "view", server, "--run", "other")
	if code != 1 {
		t.Errorf("of a run that is not there: exit code %d", code)
	}
	contains(t, stderr, `run "other"`, "the store holds done")

	fromDir := browse(t, start(t, "view", dir).address())
	if list := fetch[api.FindingList](fromDir, "api/v1/runs/done/findings"); !list.Writable {
		t.Error("with a run directory labels cannot be set")
	}
}

func TestViewRejectsBadArguments(t *testing.T) {
	t.Parallel()
	dir := analyzed(t)
	empty := t.TempDir()
	f := func(code int, want string, args ...string) {
		t.Helper()
		stdout, stderr, got := run(t, append([]string{"view"}, args...)...)
		if got != code || stdout != "" {
			t.Errorf("%v: exit code %d, %s", args, got, stdout)
		}
		contains(t, stderr, want)
	}
	f(2, "want RUN, --replay DIR or --receive")
	f(2, "host:port", dir, "--http", "here")
	f(1, "is not a run directory", empty)
	f(1, "no such file", filepath.Join(empty, "nothing"))
	f(1, "contains no page", dir, "--ui-dir", empty)
	f(1, "choose another address with --http", dir, "--http", "203.0.113.7:1")
}

func TestViewServesDevelopmentPage(t *testing.T) {
	t.Parallel()
	page := t.TempDir()
	if err := os.WriteFile(filepath.Join(page, "index.html"), []byte("<title>Chimbuko</title>mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := browse(t, start(t, "view", analyzed(t), "--ui-dir", page).address())
	if _, body := b.get(""); !strings.Contains(body, "mine") {
		t.Errorf("got %s", body)
	}
}

func TestDemoPageStaysOpen(t *testing.T) {
	t.Parallel()
	d := demonstrate(t, demoScenario, "--duration", "5s", "--stay")
	d.shows("Planted troubles")
	dir := regexp.MustCompile(`chimbuko view (\S+/run)`).FindStringSubmatch(d.stderr.String())
	first := strings.TrimSpace(must(t, "view", dir[1])) // with the token
	b := browse(t, first)
	eventually(t, "the overview appears", func() error {
		code, body := b.get("api/v1/runs/demo/overview")
		if code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	d.awaitLog("the page stays open until Ctrl-C")
	eventually(t, "the page of the finished run appears", func() error {
		code, body := b.get("api/v1/runs/demo/overview")
		if code != http.StatusOK || !strings.Contains(body, `"state":"finished"`) {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	d.interrupt()
	d.nothingIsLeft()
}

// The name of this machine may be one of its loopback interface.
func TestNetworkPageAnswersUnderHostName(t *testing.T) {
	t.Parallel()
	view := start(t, "view", analyzed(t), "--http", "0.0.0.0:0")
	view.awaitLog("Ctrl-C ends the page")
	address := strings.TrimSpace(view.stdout.String())
	host, err := os.Hostname()
	if err != nil || !strings.HasPrefix(address, "http://"+host+":") {
		t.Fatalf("the address is %s, %v", address, err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+u.Port()+"/api/v1/runs?"+u.RawQuery, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{u.Host: http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		req.Host = name
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != want {
			t.Errorf("request as %s: %d, %v", name, resp.StatusCode, err)
		}
	}
}
