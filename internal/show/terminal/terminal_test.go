package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// source answers with fixed values.
type source struct {
	picture *Picture
	err     error
	looks   int
	events  []string // requested evidence
}

func (s *source) Picture(context.Context, int, int) (*Picture, error) {
	s.looks++
	return s.picture, s.err
}

func (s *source) Evidence(_ context.Context, program int64, event string) (*api.Evidence, error) {
	s.events = append(s.events, fmt.Sprintf("%d:%s", program, event))
	if event == "gone" {
		return nil, errors.New("no such event")
	}
	return &api.Evidence{Event: event, Sentence: "sentence of " + event, Why: "why of " + event, Path: []string{"main", "solve"}}, nil
}

// running returns a picture of a running run, with that name everywhere.
func running(name string, findings int) *Picture {
	percent, rate, expected := 2.5, 98_000.0, int64(16)
	p := &Picture{
		Overview: &api.Overview{
			Run: name, Live: true, State: api.Running, Length: 75, Verdict: api.Verdict{
				Level:    api.LevelBad,
				Sentence: "3 findings cost 2.5 %. Worst: " + name,
			},
			Notices: []api.Notice{{Level: api.LevelWatch, Sentence: name}, {}},
			Figures: api.Figures{
				LostPercent: &percent, Anomalies: 1234, EventsPerSecond: &rate, Ranks: 12, RanksExpected: &expected,
				Findings: int64(findings),
			},
		},
		Heatmap: &api.Heatmap{To: 75, Columns: heatColumns(80), Max: 100},
		Status: &api.Status{
			Nodes:  []api.Node{{State: api.NodeReading, Behind: 0.4}, {State: api.NodeSilent}},
			Health: []api.Health{{Part: "store", Sentence: name}, {Part: "bus", OK: true}}, Store: &api.StoreStatus{PendingMessages: 14, Lag: 0.8},
		},
	}
	for i := range findings {
		p.Overview.Findings = append(p.Overview.Findings, api.Finding{
			Key: fmt.Sprint("key", i), Number: i + 1, Function: fmt.Sprint("f", i, name), Kind: "slow", LostOwn: 300, LostWaits: 700, Lost: 1000, Calls: 5,
			Hosts: []string{name}, HostCount: 3, Example: fmt.Sprint("0:1:", i), Summary: "sentence of finding " + fmt.Sprint(i+1),
		})
	}
	for i := range 30 {
		p.Heatmap.Rows = append(p.Heatmap.Rows, api.HeatRow{Host: name, FirstRank: int64(i), LastRank: int64(i), Ranks: 1, Lost: float64(i * 10)})
		p.Heatmap.Cells = append(p.Heatmap.Cells, api.HeatCell{Row: i, Column: i % 10, Value: 100})
	}
	return p
}

// started returns a model with its first picture.
func started(t *testing.T, s *source) *model {
	t.Helper()
	m := newModel(t.Context(), s, time.Second)
	m.Update(m.look()())
	return m
}

// press presses keys and handles their commands.
func press(m *model, keys ...string) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k, Code: []rune(k)[0]}
		switch k {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "space":
			msg = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		}
		if _, cmd := m.Update(msg); cmd != nil {
			if msg := cmd(); msg != nil {
				m.Update(msg)
			}
		}
	}
}

// shown returns the screen as text.
func shown(m *model) string { return ansi.Strip(m.draw()) }

// shows fails unless the screen has all parts.
func shows(t *testing.T, m *model, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(shown(m), p) {
			t.Errorf("the screen has no %q:\n%s", p, shown(m))
		}
	}
}

func TestOverviewFits80x24(t *testing.T) {
	m := started(t, &source{picture: running("node", 9)})
	shows(t, m, "chimbuko node  LIVE, running  00:01:15", "BAD: 3 findings cost", "lost 2.5 %", "1,234 anomalies", "12/16 ranks",
		"98,000 ev/s", "> ", "f0node", "node+2",
		"analyzers: 1 silent, 1 reading", "behind 0.4 s", "store 14 waiting", "store: node", "own slowness (causes), the worst", "@", "j/k move",
		"q quit")
}

func TestDrawStaysWithinScreen(t *testing.T) {
	for _, name := range []string{"n", strings.Repeat("long name ", 40), strings.Repeat("漢字", 40), "a\x1b[31mb\x07\nc\u202e\u200b", "🙂👩‍👩‍👧"} {
		for _, size := range [][2]int{{80, 24}, {40, 12}, {132, 50}, {20, 5}, {81, 7}} {
			for _, findings := range []int{0, 1, 9, 100} {
				m := started(t, &source{picture: running(name, findings)})
				m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				for _, keys := range [][]string{nil, {"G"}, {"enter"}, {"space", "space"}, {"esc", "?"}} {
					press(m, keys...)
					lines := strings.Split(m.draw(), "\n")
					if len(lines) != size[1] {
						t.Fatalf("%q at %v after %v: %d lines\n%s", name, size, keys, len(lines), shown(m))
					}
					for _, l := range lines {
						if ansi.StringWidth(l) > size[0] {
							t.Errorf("%q at %v after %v: %d columns: %q", name, size, keys, ansi.StringWidth(l), ansi.Strip(l))
						}
					}
				}
			}
		}
	}
}

func TestNamesAreEscaped(t *testing.T) {
	m := started(t, &source{picture: running("a\x1b[31mb\x07\x9bc\u202ed", 3)})
	for _, keys := range [][]string{nil, {"enter"}} {
		press(m, keys...)
		if text := shown(m); strings.ContainsAny(text, "\x1b\x07\u009b\u202e") {
			t.Errorf("%q", text)
		}
	}
}

func TestEvidenceIsRequestedOnce(t *testing.T) {
	s := &source{picture: running("node", 9)}
	m := started(t, s)
	press(m, "j", "j", "enter")
	shows(t, m, "Finding 3", "sentence of finding 3", "sentence of 0:1:2", "why of 0:1:2", "solve", "Esc back")
	press(m, "k", "j", "esc", "enter")
	if want := "0:0:1:2 0:0:1:1"; strings.Join(s.events, " ") != want {
		t.Errorf("requested %v, want %v", s.events, want)
	}
	press(m, "esc")
	shows(t, m, ">   3 ")
}

func TestMissingEvidence(t *testing.T) {
	p := running("node", 2)
	p.Overview.Findings[0].Example = "gone"
	p.Overview.Findings[1].Example = ""
	m := started(t, &source{picture: p})
	press(m, "enter")
	shows(t, m, "No evidence", "no such event")
	press(m, "j")
	shows(t, m, "a lasting change of a function has no anomalies")
}

func TestCursorFollowsFinding(t *testing.T) {
	s := &source{picture: running("node", 3)}
	m := started(t, s)
	press(m, "j")
	next := running("node", 3)
	next.Overview.Findings = append([]api.Finding{{Key: "new", Number: 1, Function: "worse"}}, next.Overview.Findings...)
	s.picture = next
	m.Update(m.look()())
	if i := m.finding(); i == nil || i.Key != "key1" {
		t.Errorf("the cursor is on %+v", i)
	}
	press(m, "G")
	if i := m.finding(); i.Key != "key2" {
		t.Errorf("G leads to %s", i.Key)
	}
	press(m, "g")
	if i := m.finding(); i.Key != "new" {
		t.Errorf("g leads to %s", i.Key)
	}
}

func TestPauseKeepsThePicture(t *testing.T) {
	s := &source{picture: running("before", 3)}
	m := started(t, s)
	press(m, "p")
	s.picture = running("after", 3)
	m.Update(m.look()())
	shows(t, m, "PAUSED", "before")
	if _, cmd := m.Update(tick(time.Now())); cmd == nil {
		t.Error("no tick during a pause")
	}
	if m.updating {
		t.Error("updates while paused")
	}
	press(m, "p")
	shows(t, m, "chimbuko after")
}

func TestFailedUpdateKeepsPicture(t *testing.T) {
	s := &source{err: errors.New("connection refused")}
	m := started(t, s)
	shows(t, m, "connection refused", "q quit")
	s.picture, s.err = running("node", 3), nil
	m.Update(m.look()())
	s.err = errors.New("connection refused")
	m.Update(m.look()())
	shows(t, m, "f0node", "data as of 0 s ago: connection refused")
}

func TestFinishedRunIsNotUpdated(t *testing.T) {
	p := running("node", 3)
	p.Overview.Live, p.Overview.State = false, api.Finished
	m := started(t, &source{picture: p})
	m.Update(tick(time.Now()))
	if m.updating {
		t.Error("updates a finished run")
	}
	shows(t, m, "FINISHED")

	p.Overview.Verdict.Level = api.LevelUnknown // the store could not be read
	m.Update(tick(time.Now()))
	if !m.updating {
		t.Error("shows no data of a finished run forever")
	}
}

func TestQuit(t *testing.T) {
	for _, key := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		_, cmd := started(t, &source{picture: running("node", 3)}).Update(key)
		if cmd == nil {
			t.Fatalf("%s does nothing", key)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not quit", key)
		}
	}
}

func TestPrintIsPlainText(t *testing.T) {
	var b bytes.Buffer
	live, err := Print(t.Context(), &b, &source{picture: running("node\x1b[31m", 30)}, 100)
	if err != nil || !live {
		t.Fatal(live, err)
	}
	if strings.ContainsAny(b.String(), "\x1b\r") {
		t.Errorf("%q", b.String())
	}
	for l := range strings.Lines(b.String()) {
		if ansi.StringWidth(strings.TrimSuffix(l, "\n")) > 100 {
			t.Errorf("too wide: %s", l)
		}
	}
	for _, want := range []string{"Findings 1–20 of 30, with own, caused and total lost time", "  1   300 us   700 us  1.00 ms       5× slow"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, b.String())
		}
	}
}
