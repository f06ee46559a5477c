package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
	"github.com/chimbuko/chimbuko/internal/record/provenance"
	"github.com/chimbuko/chimbuko/internal/store/provdb"
	"github.com/chimbuko/chimbuko/internal/store/query"
)

// issueFlags choose issues.
type issueFlags struct {
	kinds    []string
	function string
	all      bool
	limit    int
}

func newIssuesCmd(env *Env) *cobra.Command {
	var q questionFlags
	var flags issueFlags
	cmd := &cobra.Command{
		Use:   "issues RUN",
		Short: "what is wrong with a run: its anomalies in a few lines, the worst first",
		Long: `List what is wrong with a run. All anomalies with the same program, function, call
path, kind and cause are one issue; so are lasting changes of a function. Waits that
lost time because another execution made somebody late are told with that execution,
their culprit, and listed by themselves only with --all. docs/culprits.md tells how
culprits are found.

Issues are stored when a run ends. Those of a run that goes on, or was analyzed by an
older chimbuko, are found out now.` + whereHelp,
		Example: `  chimbuko issues run
  chimbuko issues run --all --format csv
  chimbuko issues run --kind burst,gpu
  chimbuko event run 5:41:210       # the example of an issue`,
		Args: args(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.StringSliceVar(&flags.kinds, "kind", nil, "kinds: slow, fast, comm-wait, gpu, burst, shift or drift; several with commas")
	f.StringVar(&flags.function, "func", "", "pattern of function names, with * and ?")
	f.BoolVar(&flags.all, "all", false, "also waits whose culprits are known")
	f.IntVar(&flags.limit, "limit", 20, "issues of the answer")
	return newQuestionCmd(env, cmd, &q, func(ctx context.Context, a *query.Asker, _ []string) error {
		if err := flags.check(); err != nil {
			return err
		}
		issues, err := a.Issues(ctx)
		if err != nil {
			return err
		}
		chosen := flags.choose(issues, q.only())
		shown := chosen[:min(flags.limit, len(chosen))]
		if q.format != "table" {
			return q.answer(ctx, env, issueRows(shown, a.Begin), nil)
		}
		return q.write(env, func(w io.Writer) error {
			list := &issueList{all: issues, begin: a.Begin}
			return list.write(w, shown, len(chosen)-len(shown))
		})
	})
}

func (f *issueFlags) check() error {
	for _, k := range f.kinds {
		if !slices.Contains(provenance.IssueKinds(), provenance.AnomalyKind(k)) {
			var words []string
			for _, k := range provenance.IssueKinds() {
				words = append(words, string(k))
			}
			return usagef("unknown kind %q (want %s)", k, strings.Join(words, ", "))
		}
	}
	return checkLimit(f.limit)
}

// choose returns the issues that are asked for.
func (f *issueFlags) choose(issues []provenance.Issue, program *trace.Program) (chosen []provenance.Issue) {
	pattern := outlier.Glob(cmp.Or(f.function, "*"))
	for _, i := range issues {
		switch {
		case i.Cause > 0 && !f.all && len(f.kinds) == 0,
			len(f.kinds) > 0 && !slices.Contains(f.kinds, string(i.Kind)),
			program != nil && i.PID != *program, !pattern.MatchString(i.Func):
			continue
		}
		chosen = append(chosen, i)
	}
	return chosen
}

// issueRows are issues for programs.
func issueRows(issues []provenance.Issue, begin trace.Micros) *provdb.Rows {
	columns := []provdb.Column{
		{Name: "issue", Type: provdb.Int},
		{Name: "kind", Type: provdb.Text},
		{Name: "role", Type: provdb.Text},
		{Name: "cause", Type: provdb.Int},
		{Name: "lost_us", Type: provdb.Int},
		{Name: "anomalies", Type: provdb.Int},
		{Name: "longest_us", Type: provdb.Int},
		{Name: "waits", Type: provdb.Int},
		{Name: "wait_ranks", Type: provdb.Int},
		{Name: "waits_lost_us", Type: provdb.Int},
		{Name: "ranks", Type: provdb.Text},
		{Name: "hosts", Type: provdb.Text},
		{Name: "worst_rank", Type: provdb.Int},
		{Name: "first_s", Type: provdb.Float},
		{Name: "last_s", Type: provdb.Float},
		{Name: "trend", Type: provdb.Text},
		{Name: "before_us", Type: provdb.Float},
		{Name: "after_us", Type: provdb.Float},
		{Name: "example", Type: provdb.Text},
		{Name: "program", Type: provdb.Int},
		{Name: "function", Type: provdb.Text},
		{Name: "call_path", Type: provdb.Text},
	}
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	var all [][]any
	for i := range issues {
		x := &issues[i]
		var cause, worst, before, after any
		if x.Cause > 0 {
			cause = int64(x.Cause)
		}
		if x.IsChange() {
			before, after = x.Before, x.After
		} else {
			worst = int64(x.WorstRank)
		}
		all = append(all, []any{
			int64(x.Number), string(x.Kind), orNull(string(x.Role)), cause, int64(x.LostTime), x.Anomalies, int64(x.Longest), x.Waits, x.WaitRanks,
			int64(x.WaitTime),
			orNull(rankList(x.Ranks)), orNull(strings.Join(x.Hosts, ",")), worst, float64(x.First-begin) / 1e6, float64(x.Last-begin) / 1e6,
			orNull(string(x.Trend)),
			before, after, orNull(x.Example), int64(x.PID), x.Func, orNull(x.Path),
		})
	}
	return rowsOf(columns, all)
}

// issueList writes issues for people.
type issueList struct {
	all   []provenance.Issue
	begin trace.Micros
}

func (l *issueList) write(w io.Writer, shown []provenance.Issue, more int) error {
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ISSUE\tKIND\tLOST\tANOMALIES\tRANKS\tHOSTS\tFROM\tTO\tOVER TIME\tTREND\tEXAMPLE\tFUNCTION")
	for i := range shown {
		x := &shown[i]
		hosts := oneLine(strings.Join(x.Hosts, ","))
		if len(x.Hosts) > 2 {
			hosts = counted(len(x.Hosts), "host")
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%+.3f s\t%+.3f s\t%s\t%s\t%s\t%s\n", x.Number, x.Kind, microsText(float64(x.LostTime)),
			grouped(x.Anomalies),
			cmp.Or(rankList(x.Ranks), "-"), cmp.Or(hosts, "-"), float64(x.First-l.begin)/1e6, float64(x.Last-l.begin)/1e6,
			bars(x.OverTime), cmp.Or(string(x.Trend), "-"), cmp.Or(oneLine(x.Example), "-"), oneLine(x.Func))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	lines := strings.SplitAfter(strings.TrimSuffix(table.String(), "\n"), "\n")
	for i, line := range lines {
		fmt.Fprintf(w, "%s\n", strings.TrimRight(line, " \n"))
		if i > 0 {
			for _, more := range l.remarks(&shown[i-1]) {
				fmt.Fprintf(w, "       %s\n", more)
			}
		}
	}
	if len(shown) == 0 {
		fmt.Fprintln(w, "(none)")
	}
	if more > 0 {
		fmt.Fprintf(w, "\nand %s: give a larger --limit\n", counted(more, "more issue"))
	}
	return nil
}

// remarks are what there is to say of an issue beside its line.
func (l *issueList) remarks(x *provenance.Issue) (lines []string) {
	if x.Waits > 0 {
		lines = append(lines, fmt.Sprintf("and made %s lose %s%s", waitsText(x), microsText(float64(x.WaitTime)), l.victims(x)))
	}
	switch {
	case x.IsChange():
		lines = append(lines, fmt.Sprintf("takes %s instead of %s", microsText(x.After), microsText(x.Before)))
	case x.Cause > 0:
		lines = append(lines, fmt.Sprintf("waited because of issue %d, %s", x.Cause, oneLine(l.all[x.Cause-1].Func)))
	case x.Role == provenance.Victim:
		lines = append(lines, "waited for somebody who was late; why is not known")
	case x.Role == provenance.Culprit && x.Kind == provenance.CommWait:
		lines = append(lines, "messages came late, though nothing is known to be wrong with who sent them")
	case len(x.Ranks) > 1 && x.WorstTime > x.LostTime/2:
		lines = append(lines, fmt.Sprintf("rank %d lost %s of it", x.WorstRank, microsText(float64(x.WorstTime))))
	}
	return lines
}

// waitsText says how many waits lost time because of an issue.
func waitsText(x *provenance.Issue) string {
	return fmt.Sprintf("%s on %s", counted(int(x.Waits), "wait"), counted(int(x.WaitRanks), "rank"))
}

// victims names the functions that waited because of an issue.
func (l *issueList) victims(x *provenance.Issue) string {
	var names []string
	counts := make(map[string]int64)
	for i := range l.all {
		if v := &l.all[i]; v.Cause == x.Number {
			if counts[v.Func] == 0 {
				names = append(names, v.Func)
			}
			counts[v.Func] += v.Anomalies
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %s", oneLine(name), grouped(counts[name]))
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

// bars draws counts.
func bars(counts []int64) string {
	if len(counts) == 0 || slices.Max(counts) <= 0 {
		return "-"
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	most := slices.Max(counts)
	var b strings.Builder
	for _, n := range counts {
		at := 0
		if n > 0 {
			at = 1 + int((n*int64(len(levels)-2))/most)
		}
		b.WriteRune(levels[at])
	}
	return b.String()
}

// printIssues tells the worst issues at the end of an analysis.
func printWorstIssues(w io.Writer, s *provdb.Info) {
	if s.Issues.Count == 0 {
		return
	}
	fmt.Fprintf(w, "\nThey are %s; the worst:\n\n", counted(s.Issues.Count, "issue"))
	for i := range s.Issues.Worst {
		x := &s.Issues.Worst[i]
		fmt.Fprintf(w, "%3d. %s\n", x.Number, issueText(x))
	}
}

// issueText tells an issue in a line.
func issueText(x *provenance.Issue) string {
	if x.IsChange() {
		return fmt.Sprintf("%s: %s, %s instead of %s", oneLine(x.Func), x.Kind, microsText(x.After), microsText(x.Before))
	}
	where := counted(len(x.Ranks), "rank")
	if len(x.Ranks) == 1 {
		where = fmt.Sprintf("rank %d", x.Ranks[0])
	}
	text := fmt.Sprintf("%s: %s, %s on %s lost %s", oneLine(x.Func), x.Kind, grouped(x.Anomalies), where, microsText(float64(x.LostTime)))
	if x.Waits > 0 {
		text += fmt.Sprintf(" and made %s lose %s", waitsText(x), microsText(float64(x.WaitTime)))
	}
	return text
}
