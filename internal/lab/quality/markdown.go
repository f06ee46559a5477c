package quality

import (
	_ "embed" // page.md.tmpl
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/chimbuko/chimbuko/internal/judge/analyzer"
	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

//go:embed page.md.tmpl
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// unknown is the text of a cell without a figure.
const unknown = "–"

// WriteMarkdown writes the page with the tables of results, in their order. missing are
// the names of recorded traces that were not found.
func WriteMarkdown(w io.Writer, results []*Result, findings []*FindingResult, slow []*PeerResult, missing []string) error {
	cfg := analyzer.Default()
	var detectors []string
	for _, d := range Detectors {
		text := fmt.Sprintf("%s (threshold %g)", d, outlier.DefaultThreshold(d))
		if d == outlier.SSTD {
			text = fmt.Sprintf("%s (sigma %g)", d, cfg.Outlier.Sigma)
		}
		detectors = append(detectors, text)
	}
	var further []string
	for i := 1; i < seeds; i++ {
		further = append(further, strconv.Itoa(i*seedStride))
	}
	var out strings.Builder
	err := page.Execute(&out, map[string]any{
		"Columns": columnTexts(), "Table": table(results), "FindingColumns": findingTexts(),
		"Findings": findingTable(findings), "Targets": targetTexts(findings),
		"PeerColumns": peerTexts(), "Peers": PeerTable(slow), "PeerTargets": peerTargets(slow),
		"FitSeeds": seedRange(fitSeed, fitSeeds), "ReportSeeds": seedRange(reportSeed, troubledSeeds),
		"CleanSeeds": seedRange(reportSeed, cleanSeeds), "MaxCleanSteps": maxCleanSteps,
		"FitTraces": wrap(strings.Join(fitTraces, ", "), ""), "AllSeeds": seeds + moreSeeds, "Default": DefaultDetector,
		"Missing":   strings.Join(missing, ", "),
		"Detectors": strings.Join(detectors, ", "), "MinSamples": cfg.Outlier.MinSamples,
		"Seeds": seeds, "Further": strings.Join(further, ", "), "ManyRanks": manyRanks, "Others": otherSettings(results),
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, out.String())
	return err
}

// seedRange returns the first and the last seed.
func seedRange(first, n int) string { return fmt.Sprintf("%d–%d", first, first+n-1) }

// columnTexts returns a list item for each column.
func columnTexts() []string {
	lines := []string{}
	for _, c := range columns {
		lines = append(lines, columnText(c.head, c.text))
	}
	return lines
}

func columnText(head, text string) string {
	return wrap(fmt.Sprintf("- **%s**: %s.", head, text), "  ")
}

// wrap breaks a text into lines of up to 88 characters and indents all but the first.
func wrap(text, indent string) string {
	const width = 88
	var b strings.Builder
	length := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case length+1+n > width:
			b.WriteString("\n" + indent)
			length = len(indent)
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += n
	}
	return b.String()
}

// textColumns is the number of columns before those of figures, which are aligned right.
const textColumns = 2

// table returns the rows in Markdown, aligned.
func table(results []*Result) string {
	rows := [][]string{{"data set", "detector"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.head)
	}
	for _, r := range results {
		rows = append(rows, row(r))
	}
	return align(rows, textColumns)
}

// align returns rows, the first of which are the heads of columns, in Markdown. The first columns are text.
func align(rows [][]string, textColumns int) string {
	width := make([]int, len(rows[0]))
	for _, cells := range rows {
		for i, c := range cells {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	rule := make([]string, len(width))
	for i, w := range width {
		rule[i] = strings.Repeat("-", w)
		if i >= textColumns {
			rule[i] = rule[i][1:] + ":"
		}
	}
	var b strings.Builder
	for _, cells := range slices.Insert(rows, 1, rule) {
		for i, c := range cells {
			format := "| %*s "
			if i < textColumns {
				format = "| %-*s "
			}
			fmt.Fprintf(&b, format, width[i], c)
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// row returns the cells of a result, with the original's figures in parentheses.
func row(r *Result) []string {
	cells := []string{r.Data, string(r.Detector)}
	o := originalOf(r)
	for _, c := range columns {
		text := c.cell(r)
		if text == "" {
			text = unknown
		}
		if o != nil {
			if was := c.cell(&o.Result); was != "" {
				if o.settings != "" {
					was += "*"
				}
				text += " (" + was + ")"
			}
		}
		cells = append(cells, text)
	}
	return cells
}

// otherSettings lists results of the original with unusual settings on data sets of the
// table.
func otherSettings(results []*Result) []string {
	var lines []string
	for _, r := range results {
		for _, o := range originals {
			if o.Data == r.Data && o.Detector == r.Detector && o.settings != "" {
				lines = append(lines, fmt.Sprintf("- %s, %s, %s: %d/%d found, %d wrong", o.Data, o.Detector, o.settings, o.Found, o.Planted, o.Other))
			}
		}
	}
	return lines
}
