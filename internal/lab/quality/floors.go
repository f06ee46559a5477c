package quality

import (
	"bytes"
	_ "embed" // floors.csv
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

//go:embed floors.csv
var floorsText []byte

const floorsComment = `# Bounds for each detector on each data set, which TestResultsStayAboveFloors checks; an empty
# cell has no bound. go run ./internal/lab/quality/table -floors writes this file from its
# measurements, with a tolerance: review the difference before you commit it. Shares are of 1,
# after is in seconds, first_step is a share of the calls of the step, late_other is per run.
# The last seven are measures of findings: outside is per run, unexplained per million calls.
`

// Claims are bounds of figures, by their names, for detectors on data sets.
type Claims map[claimKey]map[string]float64

type claimKey struct {
	data     string
	detector outlier.Algorithm
}

// readFloors returns the lines of floors.csv, and their order.
func readFloors() (lines map[claimKey][]string, order []claimKey, err error) {
	r := csv.NewReader(bytes.NewReader(floorsText))
	r.Comment = '#'
	all, err := r.ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("floors.csv: %w", err)
	}
	if len(all) == 0 || !slices.Equal(all[0], floorHead()) {
		return nil, nil, fmt.Errorf("floors.csv: the first line is not %v", floorHead())
	}
	lines = make(map[claimKey][]string)
	for _, cells := range all[1:] {
		key := claimKey{cells[0], outlier.Algorithm(cells[1])}
		lines[key], order = cells, append(order, key)
	}
	return lines, order, nil
}

// Floors returns the bounds of floors.csv.
func Floors() (Claims, error) {
	lines, order, err := readFloors()
	if err != nil {
		return nil, err
	}
	var errs []error
	all := make(Claims)
	for _, key := range order {
		bounds := make(map[string]float64)
		for i, cell := range lines[key][2:] {
			if cell == "" {
				continue
			}
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				errs = append(errs, fmt.Errorf("floors.csv: %s, %s, %s: %w", key.data, key.detector, figures[i].name, err))
			}
			bounds[figures[i].name] = v
		}
		all[key] = bounds
	}
	return all, errors.Join(errs...)
}

func floorHead() []string {
	head := []string{"data", "detector"}
	for _, f := range figures {
		if f.most {
			head = append(head, f.name+"_max")
		} else {
			head = append(head, f.name+"_min")
		}
	}
	return head
}

// Below returns an error for each figure of r that misses its bound, or if floors.csv does
// not have the data set.
func (c Claims) Below(r *Result) error {
	bounds, ok := c[claimKey{r.Data, r.Detector}]
	if !ok {
		return fmt.Errorf("%s, %s: no line in floors.csv (run go run ./internal/lab/quality/table -floors)", r.Data, r.Detector)
	}
	var errs []error
	for i := range figures {
		fig := &figures[i]
		bound, ok := bounds[fig.name]
		if !ok {
			continue
		}
		got, ok := fig.of(r)
		want := "at least"
		if fig.most {
			want = "at most"
		}
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%s, %s: %s is unknown, want %s %v", r.Data, r.Detector, fig.name, want, bound))
		case fig.worse(got, bound):
			errs = append(errs, fmt.Errorf("%s, %s: %s is %.4g, want %s %v", r.Data, r.Detector, fig.name, got, want, bound))
		}
	}
	return errors.Join(errs...)
}

// worse reports whether a is worse than b.
func (f *figure) worse(a, b float64) bool {
	if f.most {
		return a > b
	}
	return a < b
}

// bound returns the bound for the worst value of a figure, or "" if it is too bad.
func (f *figure) bound(worst float64) string {
	if f.worse(worst, f.claim) {
		return ""
	}
	scale := math.Pow10(f.digits)
	var v float64
	if f.most {
		v = math.Ceil((worst+worst*f.share+f.slack)*scale-1e-6) / scale
	} else {
		v = math.Floor((worst-worst*f.share-f.slack)*scale+1e-6) / scale
	}
	return strconv.FormatFloat(max(0, v), 'f', -1, 64)
}

// WriteFloors writes a floors.csv with bounds that all results of a detector on a data set
// keep. It keeps the present lines of detectors and data sets without results. New lines follow
// in the order of their first results.
func WriteFloors(w io.Writer, results []*Result) error {
	present, order, err := readFloors()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, floorsComment); err != nil {
		return err
	}
	groups := make(map[claimKey][]*Result)
	for _, r := range results {
		key := claimKey{r.Data, r.Detector}
		if groups[key] == nil && present[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], r)
	}
	lines := [][]string{floorHead()}
	for _, key := range order {
		if groups[key] == nil {
			lines = append(lines, present[key])
			continue
		}
		cells := []string{key.data, string(key.detector)}
		for i := range figures {
			cells = append(cells, figures[i].boundOf(groups[key]))
		}
		lines = append(lines, cells)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// boundOf returns the bound that all results keep.
func (f *figure) boundOf(group []*Result) string {
	var worst float64
	for i, r := range group {
		v, ok := f.of(r)
		if !ok {
			return ""
		}
		if i == 0 || f.worse(v, worst) {
			worst = v
		}
	}
	return f.bound(worst)
}
