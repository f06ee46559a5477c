package terminal

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// mode is the content below the head.
type mode int

const (
	showOverview mode = iota
	showFinding
	showHelp
)

// model is the state of the screen.
type model struct {
	ctx   context.Context //nolint:containedctx // Bubble Tea calls without one
	from  Source
	every time.Duration

	width, height int
	picture       *Picture
	failed        error     // of the last update
	seen          time.Time // when the picture was taken
	now           time.Time
	paused        bool
	updating      bool
	mode          mode
	selection     string // key of the finding under the cursor
	cursor, top   int    // of the list of findings
	scroll        int    // of the text of a finding
	evidence      map[string]*api.Evidence
	missing       map[string]error // reason for missing evidence
}

// update is a new picture.
type update struct {
	picture *Picture
	err     error
	at      time.Time
}

// answer is the evidence of an execution.
type answer struct {
	key string
	e   *api.Evidence
	err error
}

// tick is sent every second.
type tick time.Time

func newModel(ctx context.Context, from Source, every time.Duration) *model {
	return &model{
		ctx: ctx, from: from, every: every, width: 80, height: 24, updating: true,
		evidence: make(map[string]*api.Evidence), missing: make(map[string]error),
	}
}

// Init requests the first picture.
func (m *model) Init() tea.Cmd { return tea.Batch(m.look(), m.wait()) }

// look requests a picture.
func (m *model) look() tea.Cmd {
	columns, rows := heatColumns(m.width), maxHeatRows
	return func() tea.Msg {
		p, err := m.from.Picture(m.ctx, columns, rows)
		return update{p, err, time.Now()}
	}
}

// wait waits for the next look.
func (m *model) wait() tea.Cmd {
	return tea.Tick(m.every, func(t time.Time) tea.Msg { return tick(t) })
}

// Update handles a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tick:
		m.now = time.Time(msg)
		if m.paused || m.updating || m.isFinal() {
			return m, m.wait()
		}
		m.updating = true
		return m, tea.Batch(m.look(), m.wait())
	case update:
		m.take(msg)
	case answer:
		m.evidence[msg.key], m.missing[msg.key] = msg.e, msg.err
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

// isFinal reports whether the picture is that of a run that has ended, and whose store could be read.
func (m *model) isFinal() bool {
	return m.picture != nil && m.failed == nil && !m.picture.Overview.Live && m.picture.Overview.Verdict.Level != api.LevelUnknown
}

// take shows a new picture. The chosen finding stays chosen.
func (m *model) take(l update) {
	m.updating, m.failed, m.now = false, l.err, l.at
	if l.err != nil || m.paused && m.picture != nil {
		return
	}
	m.picture, m.seen = l.picture, l.at
	for i := range m.rows() {
		if m.rows()[i].Key == m.selection {
			m.cursor = i
		}
	}
	m.move(0)
}

// rows returns the findings.
func (m *model) rows() []api.Finding {
	if m.picture == nil {
		return nil
	}
	return m.picture.Overview.Findings
}

// finding returns the finding under the cursor, or nil.
func (m *model) finding() *api.Finding {
	if m.cursor < 0 || m.cursor >= len(m.rows()) {
		return nil
	}
	return &m.rows()[m.cursor]
}

// move moves the cursor.
func (m *model) move(by int) {
	m.cursor = max(0, min(m.cursor+by, len(m.rows())-1))
	if i := m.finding(); i != nil {
		m.selection = i.Key
	}
}

// key handles a key.
func (m *model) key(name string) (tea.Model, tea.Cmd) {
	switch name {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "?", "h":
		m.mode = map[bool]mode{true: showOverview, false: showHelp}[m.mode == showHelp]
	case "esc", "backspace", "left":
		m.mode = showOverview
	case "j", "down":
		return m, m.step(1)
	case "k", "up":
		return m, m.step(-1)
	case "pgdown", "space", " ":
		m.scroll += m.height / 2
	case "pgup":
		m.scroll = max(0, m.scroll-m.height/2)
	case "g", "home":
		return m, m.step(-len(m.rows()))
	case "G", "end":
		return m, m.step(len(m.rows()))
	case "enter", "right", "l":
		if m.finding() != nil {
			m.mode, m.scroll = showFinding, 0
			return m, m.fetchEvidence()
		}
	case "p":
		if m.paused = !m.paused; !m.paused {
			return m.key("r")
		}
	case "r":
		if !m.updating {
			m.updating = true
			return m, m.look()
		}
	}
	return m, nil
}

// step moves to another finding.
func (m *model) step(by int) tea.Cmd {
	if m.mode == showHelp {
		m.mode = showOverview
	}
	m.move(by)
	if m.mode == showFinding {
		m.scroll = 0
		return m.fetchEvidence()
	}
	return nil
}

// fetchEvidence requests the evidence of the finding under the cursor.
func (m *model) fetchEvidence() tea.Cmd {
	i := m.finding()
	if i == nil || i.Example == "" {
		return nil
	}
	key, program, event := evidenceKey(i), i.Program, i.Example
	if m.evidence[key] != nil {
		return nil
	}
	return func() tea.Msg {
		e, err := m.from.Evidence(m.ctx, program, event)
		return answer{key, e, err}
	}
}

func evidenceKey(i *api.Finding) string { return i.Key + " " + i.Example }

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	return v
}
