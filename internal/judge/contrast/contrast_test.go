package contrast_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chimbuko/chimbuko/internal/judge/contrast"
	"github.com/chimbuko/chimbuko/internal/show/api"
)

// onRanks returns executions on ranks, each at a different time.
func onRanks(ranks ...float64) (cells []contrast.Cell) {
	for i, r := range ranks {
		cells = append(cells, contrast.Cell{Number: r, Label: fmt.Sprintf("node%02.0f", math.Floor(r/4)), Unit: uint64(i)})
	}
	return cells
}

// places returns the fields host and rank of a program with four ranks per host.
func places(ranks int, cells []contrast.Cell) []contrast.Column {
	host, rank := contrast.Column{Name: "host"}, contrast.Column{Name: "rank", Shape: contrast.Numbers}
	for r := range ranks {
		host.Shares = append(host.Shares, contrast.Share{Label: fmt.Sprintf("node%02d", r/4), Weight: 1})
		rank.Shares = append(rank.Shares, contrast.Share{Number: float64(r), Weight: 1})
	}
	for _, c := range cells {
		host.Selection = append(host.Selection, contrast.Cell{Label: c.Label, Unit: c.Unit})
		rank.Selection = append(rank.Selection, contrast.Cell{Number: c.Number, Unit: c.Unit})
	}
	return []contrast.Column{host, rank}
}

func repeated(n int, values ...float64) (all []float64) {
	for range n {
		all = append(all, values...)
	}
	return all
}

func TestHostComesBeforeItsRanksIfAllAreAffected(t *testing.T) {
	f := func(want string, ranks ...float64) {
		t.Helper()
		found := contrast.Default().Compare(places(16, onRanks(ranks...)))
		if got := found[0]; got.Name != want || !got.Notable {
			t.Errorf("ranks %v: got %+v, want %s", ranks, got, want)
		}
	}
	f("host", repeated(10, 8, 9, 10, 11)...)
	f("rank", repeated(20, 9)...)
	f("rank", repeated(10, 9, 10)...)
	f("host", repeated(10, 0, 1, 2, 3, 8, 9, 10, 11)...)
	f("rank", repeated(5, 5, 6, 7, 8, 9, 10)...) // a range across hosts
}

func TestSpreadByChanceIsNotNotable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	const runs = 400
	for range runs {
		ranks := make([]float64, 1+random.IntN(60))
		for i := range ranks {
			ranks[i] = float64(random.IntN(16))
		}
		columns := places(16, onRanks(ranks...))
		amount := contrast.Column{Name: "memory", Shape: contrast.Amounts}
		for i := range ranks {
			amount.Selection = append(amount.Selection, contrast.Cell{Number: random.NormFloat64(), Unit: uint64(i)})
		}
		for i := range 30 {
			amount.Baseline = append(amount.Baseline, contrast.Cell{Number: random.NormFloat64(), Unit: uint64(1000 + i)})
		}
		if found := contrast.Default().Compare(append(columns, amount)); found[0].Notable {
			wrong++
		}
	}
	if most := runs / 100; wrong > most {
		t.Errorf("%d of %d are notable, want at most %d", wrong, runs, most)
	}
}

func TestSimultaneousExecutionsOfRankCountOnce(t *testing.T) {
	cells := onRanks(repeated(100, 9)...)
	for i := range cells {
		cells[i].Unit = 7
	}
	found := contrast.Default().Compare(places(16, cells))
	if got := found[0]; got.Name != "rank" || got.Notable || got.With != 100 || got.Units != 1 || got.Chance != 1 {
		t.Errorf("100 executions in one burst: got %+v", got)
	}
}

func TestTimeComesAfterCauses(t *testing.T) {
	when := contrast.Column{Name: "time", Shape: contrast.Spans, Role: contrast.When}
	for i := range 100 {
		when.Shares = append(when.Shares, contrast.Share{Number: float64(i), Weight: 1})
	}
	for i := range 40 {
		when.Selection = append(when.Selection, contrast.Cell{Number: float64(50 + i%3), Unit: uint64(i)})
	}
	names := func(found []contrast.Finding) (names []string) {
		for _, f := range found {
			names = append(names, f.Name)
		}
		return names
	}
	got := names(contrast.Default().Compare(append(places(16, onRanks(repeated(40, 9)...)), when)))
	if want := []string{"rank", "host", "time"}; !slices.Equal(got, want) {
		t.Errorf("on one rank: got %v, want %v", got, want)
	}
	spread := make([]float64, 40)
	for i := range spread {
		spread[i] = float64(i % 16)
	}
	found := contrast.Default().Compare(append(places(16, onRanks(spread...)), when))
	if found[0].Name != "time" || !found[0].Notable || found[0].From != 50 || found[0].To != 52 {
		t.Errorf("on all ranks: got %+v", found[0])
	}
}

func TestSelectedFieldComesLast(t *testing.T) {
	columns := places(16, onRanks(repeated(40, 9)...))
	columns[1].Role = contrast.Chosen
	found := contrast.Default().Compare(columns)
	if last := found[len(found)-1]; last.Name != "rank" || last.Notable {
		t.Errorf("got %+v", last)
	}
}

func TestAmountIsComparedWithSampleOrMoments(t *testing.T) {
	column := contrast.Column{Name: "memory", Shape: contrast.Amounts}
	for i := range 20 {
		column.Selection = append(column.Selection, contrast.Cell{Number: 1000 + float64(i), Unit: uint64(i)})
	}
	column.Moments = &contrast.Moments{Mean: 100, Deviation: 100, Count: 5000}
	found := contrast.Default().Compare([]contrast.Column{column})
	// Cantelli: at most 1 of 1 + 9² readings are nine deviations above the mean.
	if f := found[0]; !f.Bounded || !f.Least || f.From != 1000 || math.Abs(f.BaselineShare-1.0/82) > 1e-12 || !f.Notable {
		t.Errorf("moments: got %+v", f)
	}
	column.Moments = nil
	for i := range 10 {
		column.Baseline = append(column.Baseline, contrast.Cell{Number: float64(i), Unit: uint64(100 + i)})
	}
	found = contrast.Default().Compare([]contrast.Column{column})
	if f := found[0]; f.Bounded || !f.Least || f.With != 20 || f.BaselineWith != 0 || f.BaselineOf != 10 || !f.Notable {
		t.Errorf("sample: got %+v", f)
	}
}

func TestMissingValuesCountAsOthers(t *testing.T) {
	column := contrast.Column{Name: "link", Of: 40}
	for i := range 20 {
		column.Selection = append(column.Selection, contrast.Cell{Label: "5 – 6", Unit: uint64(i)})
		column.Baseline = append(column.Baseline, contrast.Cell{Label: "1 – 2", Unit: uint64(100 + i)})
	}
	if f := contrast.Default().Compare([]contrast.Column{column})[0]; f.With != 20 || f.Of != 40 || f.Share != 0.5 {
		t.Errorf("got %+v", f)
	}
}

func TestConstantFieldIsOmitted(t *testing.T) {
	f := func(c contrast.Column) {
		t.Helper()
		if found := contrast.Default().Compare([]contrast.Column{c}); len(found) > 0 {
			t.Errorf("%+v: got %+v", c, found)
		}
	}
	f(contrast.Column{})
	f(contrast.Column{Selection: onRanks(1)})
	f(contrast.Column{Baseline: onRanks(1)})
	f(contrast.Column{Selection: []contrast.Cell{{Label: "x"}}, Shares: []contrast.Share{{Label: "x", Weight: 1}}})
}

// The reference is the sum over all four cases.
func TestGainIsTheMutualInformation(t *testing.T) {
	for _, c := range [][2]float64{{1, 0}, {0.5, 0.5}, {1, 0.25}, {0.9, 0.07}, {0.3, 0.29}} {
		want := 0.0
		for _, side := range c {
			for _, p := range []struct{ joint, value float64 }{{side / 2, (c[0] + c[1]) / 2}, {(1 - side) / 2, 1 - (c[0]+c[1])/2}} {
				if p.joint > 0 {
					want += p.joint * math.Log2(p.joint/(0.5*p.value))
				}
			}
		}
		if got := contrast.Gain(c[0], c[1]); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: got %v, want %v", c, got, want)
		}
	}
}

func FuzzCompare(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(20), uint8(5))
	f.Add(uint64(2), uint8(0), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, shape, n, m uint8) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := contrast.Column{Name: "x", Shape: contrast.Shape(shape % 4), Of: int(n)}
		for range n {
			v := math.Floor(8 * random.Float64())
			c.Selection = append(c.Selection, contrast.Cell{Label: fmt.Sprint(v), Number: v, Unit: random.Uint64N(16)})
		}
		for range m {
			v := math.Floor(8 * random.Float64())
			c.Baseline = append(c.Baseline, contrast.Cell{Label: fmt.Sprint(v), Number: v, Unit: random.Uint64N(16)})
		}
		if seed%3 == 0 {
			c.Moments = &contrast.Moments{Mean: 3, Deviation: 2 * random.Float64(), Count: 10}
		}
		for _, x := range contrast.Default().Compare([]contrast.Column{c}) {
			if !(x.Bits >= 0 && x.Bits <= 1 && x.Chance >= 0 && x.Chance <= 1 && x.Share >= 0 && x.Share <= 1 && x.BaselineShare >= 0 &&
				x.BaselineShare <= 1) || x.With > x.Of {
				t.Fatalf("%+v: got %+v", c, x)
			}
		}
	})
}

// A weak difference that is not chance is described, rather than denied above a table that shows it.
func TestSentenceHasWeakDifferencesThatAreNotChance(t *testing.T) {
	f := func(onFirst int, want string) {
		t.Helper()
		ranks := append(slices.Repeat([]float64{1}, onFirst), slices.Repeat([]float64{0}, 846-onFirst)...)
		column := places(2, onRanks(ranks...))[1]
		e := &contrast.Explanation{Explained: api.Explained{Selected: 846, Examined: 846}}
		e.Explain([]contrast.Field{{Column: column, Key: contrast.FieldKey{Kind: contrast.FieldRank}, Rest: "ranks"}}, contrast.Bins{Extent: 1000})
		if len(e.Fields) != 1 || e.Fields[0].Notable || e.Sentence != want {
			t.Errorf("got %q of %+v, want %q", e.Sentence, e.Fields, want)
		}
	}
	f(520, "520 of 846 executions ran on rank 1, 1 of 2 ranks (weak; not chance)")
	f(430, "No stored field sets 846 executions apart: the differences may be chance")
}
