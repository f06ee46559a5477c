package output

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/chimbuko/chimbuko/internal/base/text"
	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

var (
	explanationColumns = columns("field name values executions:int of:int rest rest_share:float bits:float chance:float notable:bool sentence")
	groupColumns       = columns("field value term executions:int lost_us:int")
)

// Explanation returns the fields in which selected anomalies differ from other calls.
func Explanation(e *contrast.Explanation) *Answer {
	return &Answer{
		Text: func(w io.Writer) error { return writeExplanation(w, e) },
		Rows: rowsOf(explanationColumns, e.Fields, func(c *contrast.Difference) []any {
			return []any{string(c.Kind), c.Name, c.Values, c.With, c.Of, c.Rest, c.BaselineShare, c.Bits, c.Chance, c.Notable, e.Sentence}
		}),
	}
}

func writeExplanation(w io.Writer, e *contrast.Explanation) error {
	fmt.Fprintf(w, "%s.\n", text.SingleSpaced(e.Sentence))
	if e.Examined > 0 {
		fmt.Fprintf(w, "%s lost %s; compared with %s and %s of the same functions.\n",
			text.Count(e.Selected, "anomaly"), text.Duration(float64(e.Lost)),
			text.Count(e.Typical, "typical execution"), text.Count(e.Others, "other anomaly"))
	}
	fmt.Fprintln(w)
	table := rowsOf(columns("_ field values here elsewhere bits chance"), e.Fields, func(c *contrast.Difference) []any {
		mark := ""
		if c.Notable {
			mark = "*"
		}
		return []any{mark, c.Name, c.Values, text.Int(c.With) + " of " + text.Int(c.Of), c.Rest, fmt.Sprintf("%.2f", c.Bits), c.ChanceText()}
	})
	if err := writeTable(w, table); err != nil {
		return err
	}
	if e.Thread != "" {
		fmt.Fprintf(w, "\n%s.", text.SingleSpaced(e.Thread))
	}
	_, err := fmt.Fprintln(w, "\n* differs by more than chance explains")
	return err
}

// Groups returns selected anomalies by the values of a field.
func Groups(g *api.ExplainGroups) *Answer {
	rest, none := g.Rest, g.None
	rest.Label, none.Label = "(others)", "(none)"
	list := append(slices.Clone(g.Rows), rest, none)
	list = slices.DeleteFunc(list, func(r api.ExplainGroup) bool { return r.Executions == 0 })
	return &Answer{
		Text: func(w io.Writer) error { return writeGroups(w, g) },
		Rows: rowsOf(groupColumns, list, func(r *api.ExplainGroup) []any {
			var term any
			if r.Term != "" {
				term = r.Term
			}
			return []any{g.Field, r.Label, term, r.Executions, r.Lost}
		}),
	}
}

func writeGroups(w io.Writer, g *api.ExplainGroups) error {
	about := ""
	if g.Estimated {
		about = "about "
	}
	values := text.Count(g.Values, "value")
	if g.Ranges {
		values = text.Count(len(g.Rows), "range")
	}
	fmt.Fprintf(w, "%s%s lost %s; %s of %s.\n",
		about, text.Count(g.Selected, "anomaly"), text.Duration(float64(g.Lost)), values, text.SingleSpaced(g.Name))
	if g.Examined < g.Selected {
		fmt.Fprintf(w, "The table is based on a sample of %s.\n", text.Count(g.Examined, "anomaly"))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\nANOMALIES\tSHARE\tLOST\t  %s\n", strings.ToUpper(text.SingleSpaced(g.Name)))
	row := func(r *api.ExplainGroup, label string) {
		if r.Executions > 0 {
			share := 100 * float64(r.Executions) / float64(g.Examined)
			fmt.Fprintf(t, "%s\t%.0f %%\t%s\t  %s\n", text.Int(r.Executions), share, text.Duration(float64(r.Lost)), label)
		}
	}
	for i := range g.Rows {
		row(&g.Rows[i], text.SingleSpaced(g.Rows[i].Label))
	}
	row(&g.Rest, text.Count(g.Values-len(g.Rows), "more value")+"; a larger --groups lists them")
	row(&g.None, "without one")
	return t.Flush()
}
