package explain

import (
	"fmt"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// counters lists the counters of the execution.
func (p *page) counters() {
	list := p.CounterEvents
	if len(list) == 0 {
		p.missing = append(p.missing, "counters")
		return
	}
	p.heading("Counters")
	time := func(c *provenance.CounterEntry) string { return text.Offset(p.sinceEntry(c.Timestamp)) }
	value := func(c *provenance.CounterEntry) string { return text.Int(c.Value) }
	times, values := max(2, widest(list, time)), max(5, widest(list, value))
	p.line("  %s  %s  COUNTER", right("AT", times), right("VALUE", values))
	for i := range shownLines(len(list), p.skip) {
		c := &list[i]
		p.line("  %s  %s  %s", right(time(c), times), right(value(c), values), text.Shorten(escape(c.Name), p.Width-times-values-6))
	}
}

// nodeState lists the state of the node in columns.
func (p *page) nodeState() {
	if p.NodeState == nil || len(p.NodeState.Data) == 0 {
		p.missing = append(p.missing, "state of the node")
		return
	}
	list := p.NodeState.Data
	p.heading("State of the node, %s", p.whenText(p.NodeState.Timestamp))
	value := func(e *provenance.StateEntry) string { return text.Int(e.Value) }
	values := widest(list, value)
	fields := widest(list, func(e *provenance.StateEntry) string { return escape(e.Field) })
	columns := max(1, p.Width/(values+min(fields, enoughForField)+4))
	fields = min(fields, p.Width/columns-values-4)
	rows := (len(list) + columns - 1) / columns
	for i := range rows {
		var line strings.Builder
		for k := i; k < len(list); k += rows {
			fmt.Fprintf(&line, "  %s  %s", right(value(&list[k]), values), left(text.Shorten(escape(list[k].Field), fields), fields))
		}
		p.line("%s", line.String())
	}
}

// enoughForField is the width of shortened names of fields.
const enoughForField = 28
