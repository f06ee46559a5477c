package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// What was planted in burst: 15 calls of collide on rank 1, and 40 of stream on each rank of
// node01.
func TestExplainListsDifferences(t *testing.T) {
	dir := burstRun(t)
	for _, c := range tracetest.Sample([]struct {
		args []string
		want []string
	}{
		{nil, []string{
			`^All 15 executions of collide ran on rank 1, 1 of 8 ranks \((strong|moderate); (not|possibly) chance\)`,
			`(?m)^15 anomalies lost [0-9.]+ ms; compared with 1 typical execution and 0 other anomalies of the same functions\.$`,
			`(?m)^ +FIELD +VALUES +HERE +ELSEWHERE +BITS +CHANCE\n[ *] +rank +1 +15 of 15 +1 of 8 ranks`,
		}},
		{[]string{"--finding", "2"}, []string{`^All 160 executions of stream ran on node01, which has 4 of 8 ranks`}},
		{[]string{"--rank", "4-7", "--from", "5.5", "--to", "6.5s", "--func", "str*"}, []string{`(?m)^  +host +node01 +160 of 160 `}},
		{
			[]string{"--finding", "2", "--only", "host=node01", "--without", "rank=4..6"},
			[]string{`^All 40 executions of stream`, `(?m)^  +host +node01 +40 of 40 `},
		},
		{[]string{"--func", "stream", "--lasso", "5:1,7:1,7:1000000,5:1000000"}, []string{`^All 160 executions`}},
		{[]string{"--finding", "2", "--group-by", "rank", "--groups", "3"}, []string{
			`^160 anomalies lost [0-9.]+ m?s; 4 values of rank\.\n`, `(?m)^ +ANOMALIES +SHARE +LOST +RANK\n +40 +25 % +[0-9.]+ ms +[4-7]$`,
			`(?m)^ +40 +25 % .* 1 more value; a larger --groups lists them$`,
		}},
		{[]string{"--finding", "2", "--group-by", "time"}, []string{`; 1 range of time\.`, `(?m)160 +100 % .* 5\.\d\d s to 6\.\d\d s$`}},
		{[]string{"--rank", "0-7", "--group-by", "function"}, []string{
			`values of function\.\n`, `(?m)^ +160 .* stream$`,
			`(?m)^ +15 .* collide$`,
		}},
		{[]string{"--rank", "0-7", "--only", "function=stream"}, []string{`^All 160 executions of stream`}},
		{[]string{"--host", "nowhere"}, []string{`^No anomaly is in the selection\.\n`}},
	}, 3) {
		text := must(t, append([]string{"explain", dir}, c.args...)...)
		for _, want := range c.want {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%v: no %s in\n%s", c.args, want, text)
			}
		}
	}
	groups := queryJSON(t, "explain", dir, "--finding", "2", "--group-by", "host")
	if len(groups) != 1 || groups[0]["term"] != "host=node01" || groups[0]["executions"] != 160.0 || groups[0]["field"] != "host" {
		t.Errorf("groups as JSON: got %v", groups)
	}
	rows := queryJSON(t, "explain", dir, "--finding", "2")
	if first := rows[0]; first["field"] != "host" || first["values"] != "node01" || first["executions"] != 160.0 || first["of"] != 160.0 ||
		!strings.HasPrefix(first["sentence"].(string), "All 160") {
		t.Errorf("as JSON: got %v", first)
	}
}

func TestExplainRejectsInvalidFlags(t *testing.T) {
	dir := burstRun(t)
	for want, args := range map[string][]string{
		"finding 99: no such finding (chimbuko findings --all lists them)": {"--finding", "99"},
		"--from: ":                             {"--from", "soon"},
		"--rank: ":                             {"--rank", "x"},
		"nor --max-us less than --min-us":      {"--min-us", "5", "--max-us", "2"},
		"--only: ":                             {"--only", "rank=x"},
		"--without: ":                          {"--without", "color=red"},
		"a lasso has 3 to 50 corners":          {"--lasso", "1:2"},
		"--group-by: ":                         {"--group-by", "color"},
		"--groups 0 is not between 1 and 1000": {"--group-by", "rank", "--groups", "0"},
		`unknown kind "odd" (want `:            {"--kind", "odd"},
	} {
		r := run(t, append([]string{"explain", dir}, args...)...)
		if r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: exit code %d, %q; want %q", args, r.code, r.stderr, want)
		}
	}
}
