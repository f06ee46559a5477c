package callpath_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/calls/callpath"
	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// call is a call with its path, in the plainest form.
type call struct {
	path string // letters
	time uint64
}

// shortened returns a path without deep recursion, and "*" at the end of one that is too deep.
func shortened(path string) (short string) {
	for i := range len(path) {
		f := path[i : i+1]
		switch {
		case strings.Count(short, f) == callpath.MaxRecursion:
			short = short[:strings.LastIndex(short, f)+1]
		case len(short) == callpath.MaxDepth:
			return short + "*"
		default:
			short += f
		}
	}
	return short
}

// level returns the depth at which a function has reached MaxRecursion, or else that of the path.
func level(short string) int {
	for n := range len(short) {
		if strings.Count(short[:n+1], short[n:n+1]) == callpath.MaxRecursion {
			return n + 1
		}
	}
	return len(short)
}

// folded returns the expected content of a tree with all these calls.
func folded(calls []call, limit int) (sums map[string]callpath.Sums, depth int) {
	paths := make(map[string]bool)
	for _, c := range calls {
		for n := range len(c.path) {
			if p := shortened(c.path[:n+1]); !strings.HasSuffix(p, "*") {
				paths[p] = true
			}
		}
	}
	atDepth := make(map[int]int)
	for p := range paths {
		atDepth[level(p)]++
	}
	for n := 0; depth < callpath.MaxDepth; depth++ {
		if n += atDepth[depth+1]; n > limit {
			break
		}
	}
	sums = make(map[string]callpath.Sums)
	for _, c := range calls {
		p := shortened(c.path)
		if level(p) > depth {
			p = p[:depth] + "*"
		}
		s := sums[p]
		sums[p] = callpath.Sums{Calls: s.Calls + 1, Exclusive: s.Exclusive + c.time}
	}
	return sums, depth
}

// add adds a call to a tree, as a builder of calls does.
func add(t *callpath.Tree, c call) {
	n := callpath.Root
	for i := range len(c.path) {
		n = t.Child(n, uint32(c.path[i]))
		if t.ExceedsLimit() {
			n = t.Fold()[n]
		}
	}
	t.Add(n, 1, c.time)
}

// read returns the paths with calls of a list.
func read(list []callpath.Entry) map[string]callpath.Sums {
	names, sums := make([]string, len(list)), make(map[string]callpath.Sums)
	for i, e := range list {
		if e.Parent >= 0 {
			names[i] = names[e.Parent]
		}
		if e.Func == callpath.Other {
			names[i] += "*"
		} else {
			names[i] += string(rune(e.Func))
		}
		if e.Calls > 0 {
			sums[names[i]] = e.Sums
		}
	}
	return sums
}

func compare(t *testing.T, what string, got, want map[string]callpath.Sums) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	keys := slices.Sorted(maps.Keys(got))
	for p := range want {
		if _, ok := got[p]; !ok {
			keys = append(keys, p)
		}
	}
	shown := 0
	for _, p := range keys {
		if got[p] != want[p] && shown < 10 {
			shown++
			t.Errorf("%s: %.40s: got %v, want %v", what, p, got[p], want[p])
		}
	}
}

func TestCallsAreCountedByPath(t *testing.T) {
	tree := callpath.New(100)
	for _, c := range []call{{"m", 5}, {"mab", 1}, {"mab", 2}, {"mb", 7}, {"b", 0}, {"mab", 3}} {
		add(tree, c)
	}
	compare(t, "calls", read(tree.Append(nil, nil)), map[string]callpath.Sums{
		"m": {Calls: 1, Exclusive: 5}, "mab": {Calls: 3, Exclusive: 6}, "mb": {Calls: 1, Exclusive: 7}, "b": {Calls: 1},
	})
	if tree.Len() != 5 || tree.Folded() != 0 || tree.Depth() != callpath.MaxDepth {
		t.Errorf("%d paths, %d calls folded, depth %d; want 5, 0 and %d", tree.Len(), tree.Folded(), tree.Depth(), callpath.MaxDepth)
	}
	if n := tree.Find(callpath.Root, 'x'); n != callpath.Root {
		t.Errorf("a path that was never met is %d", n)
	}
}

// randomCalls have paths with few or many functions, deep or flat.
func randomCalls(rng *rand.Rand) []call {
	var calls []call
	functions, deepest := 1+rng.IntN(12), 1+rng.IntN(1<<rng.IntN(9))
	for range rng.IntN(200) {
		path := make([]byte, 1+rng.IntN(deepest))
		for k := range path {
			path[k] = 'a' + byte(rng.IntN(functions))
			if rng.IntN(3) > 0 {
				path[k] = 'a' // so that paths have something in common
			}
		}
		for n := range path { // a path exists if it has calls or is the beginning of one that has
			if short := shortened(string(path[:n+1])); n == len(path)-1 || !strings.HasPrefix(shortened(string(path)), short) {
				calls = append(calls, call{string(path[:n+1]), rng.Uint64N(1000)})
			}
		}
	}
	return calls
}

// TestMergeIsIndependentOfOrder divides calls among trees at random, merges these into
// others, some through their encoding, and compares the result with the definition.
func TestMergeIsIndependentOfOrder(t *testing.T) {
	for seed := range tracetest.Cases(uint64(150), 20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		calls, limit := randomCalls(rng), 1+rng.IntN(120)
		want, depth := folded(calls, limit)
		rng.Shuffle(len(calls), func(i, k int) { calls[i], calls[k] = calls[k], calls[i] })
		trees := make([]*callpath.Tree, 1+rng.IntN(8))
		for i := range trees {
			trees[i] = callpath.New(limit)
		}
		for _, c := range calls {
			tree := trees[rng.IntN(len(trees))]
			add(tree, c)
			if rng.IntN(50) == 0 && tree != trees[0] { // pass on the new calls
				merge(t, rng, trees[0], tree)
				tree.Reset()
			}
		}
		for len(trees) > 1 {
			n := len(trees) - 1
			into := rng.IntN(n)
			merge(t, rng, trees[into], trees[n])
			trees = trees[:n]
		}
		tree := trees[0]
		what := fmt.Sprintf("seed %d, at most %d paths", seed, limit)
		compare(t, what, read(tree.Append(nil, nil)), want)
		if tree.Depth() != depth || tree.ExceedsLimit() || tree.Len() > 2*limit+1 {
			t.Errorf("%s: depth %d, want %d; %d paths in all", what, tree.Depth(), depth, tree.Len())
		}
		other := uint64(0)
		for p, s := range want {
			if strings.HasSuffix(p, "*") {
				other += s.Calls
			}
		}
		if tree.Folded() != other {
			t.Errorf("%s: %d calls are folded, want %d", what, tree.Folded(), other)
		}
		if t.Failed() {
			return
		}
	}
}

func merge(t *testing.T, rng *rand.Rand, into, from *callpath.Tree) {
	t.Helper()
	list := from.Append(nil, nil)
	if rng.IntN(2) == 0 {
		list = callpath.Sort(list, func(a, b uint32) int { return cmp.Compare(b, a) })
	}
	if rng.IntN(2) == 0 {
		var err error
		if list, err = callpath.Decode(nil, callpath.AppendBinary(nil, list)); err != nil {
			t.Fatal(err)
		}
	}
	before := read(from.Append(nil, nil))
	into.Merge(from.Depth(), list)
	compare(t, "what was merged has changed", read(from.Append(nil, nil)), before)
}

func TestRecursionHasFewPaths(t *testing.T) {
	f := func(cycle string, paths, other int) {
		t.Helper()
		tree := callpath.New(callpath.MaxPaths)
		deep := "m" + strings.Repeat(cycle, 3000/len(cycle))
		for n := range deep {
			add(tree, call{deep[:n+1], 1})
		}
		if tree.Len() != paths || int(tree.Folded()) != other {
			t.Errorf("recursion of %d functions: %d paths, %d calls folded; want %d and %d", len(cycle), tree.Len(), tree.Folded(), paths, other)
		}
	}
	f("r", 1+callpath.MaxRecursion, 0)
	f("ab", 1+2*callpath.MaxRecursion, 0)
	f("abcdefghijkl", 1+12*callpath.MaxRecursion, 0)
	f("abcdefghijklnopqrstuvwxyzABCDEFGHIJKLMNOPQRST", callpath.MaxDepth+1, 2971-callpath.MaxDepth)
}

func TestTooManyRootsBecomeOnePath(t *testing.T) {
	tree := callpath.New(3)
	for i := range 4 {
		add(tree, call{string(rune('a' + i)), 10})
	}
	compare(t, "four functions", read(tree.Append(nil, nil)), map[string]callpath.Sums{"*": {Calls: 4, Exclusive: 40}})
	add(tree, call{"abc", 2})
	compare(t, "one more", read(tree.Append(nil, nil)), map[string]callpath.Sums{"*": {Calls: 5, Exclusive: 42}})
}

func TestTakeKeepsSkippedPaths(t *testing.T) {
	tree := callpath.New(100)
	for _, c := range []call{{"m", 1}, {"mx", 2}, {"mxa", 4}, {"ma", 8}, {"x", 16}} {
		add(tree, c)
	}
	skip := func(fn uint32) bool { return fn == 'x' }
	compare(t, "without x", read(tree.Append(nil, skip)), map[string]callpath.Sums{
		"m":  {Calls: 1, Exclusive: 1},
		"ma": {Calls: 1, Exclusive: 8},
	})
	taken, left := tree.Take(nil, skip)
	compare(t, "taken without x", read(taken), map[string]callpath.Sums{"m": {Calls: 1, Exclusive: 1}, "ma": {Calls: 1, Exclusive: 8}})
	if left != 3 {
		t.Errorf("%d calls are left, want 3", left)
	}
	compare(t, "what is left", read(tree.Append(nil, nil)), map[string]callpath.Sums{
		"mx": {Calls: 1, Exclusive: 2}, "mxa": {Calls: 1, Exclusive: 4}, "x": {Calls: 1, Exclusive: 16},
	})
	if _, left := tree.Take(nil, nil); left != 0 || len(tree.Append(nil, nil)) != 0 {
		t.Errorf("%d calls and %d paths are left, want none", left, len(tree.Append(nil, nil)))
	}
}

func TestSort(t *testing.T) {
	f := func(calls string, limit int, want string) {
		t.Helper()
		tree := callpath.New(limit)
		for path := range strings.FieldsSeq(calls) {
			add(tree, call{path, 1})
		}
		var got []string
		list := callpath.Sort(tree.Append(nil, nil), func(a, b uint32) int { return cmp.Compare(a, b) })
		for i := range list {
			text := ""
			for at := int32(i); at >= 0; at = list[at].Parent {
				c := "*"
				if list[at].Func != callpath.Other {
					c = string(rune(list[at].Func))
				}
				text = c + text
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s, at most %d: got %s, want %s", calls, limit, text, want)
		}
	}
	f("", 9, "")
	f("c b a", 9, "a b c")
	f("cb ca a ab b", 9, "a ab b c ca cb")
	f("bcd bca bb bc", 99, "b bb bc bca bcd")
	f("cba ab c abc ad", 5, "a ab ab* ad c cb cb*")
}

func TestProfilesMergeByNames(t *testing.T) {
	a, b := callpath.NewProfile(100), callpath.NewProfile(100)
	list := func(names ...string) (all []callpath.NamedEntry) {
		for i, name := range names {
			all = append(all, callpath.NamedEntry{Parent: int32(i) - 1, Name: name, Sums: callpath.Sums{Calls: uint64(i), Exclusive: 10}})
		}
		return all
	}
	a.Merge(callpath.MaxDepth, list("main", "solve", "send"))
	b.Merge(callpath.MaxDepth, list("main", "send", callpath.OtherName))
	b.Merge(callpath.MaxDepth, list("main", "solve"))
	a.MergeProfile(b)
	text := func(p *callpath.Profile) string {
		var out strings.Builder
		for _, e := range callpath.Sort(p.Append(nil), p.Compare) {
			fmt.Fprintf(&out, "%d %s %d/%d; ", e.Parent, p.Name(e.Func), e.Calls, e.Exclusive)
		}
		return out.String()
	}
	if got, want := text(a), "-1 main 0/30; 0 send 1/10; 1 (other paths) 2/10; 0 solve 2/20; 3 send 2/10; "; got != want {
		t.Errorf("merged:\n got %s\nwant %s", got, want)
	}
	if got, want := text(b), "-1 main 0/20; 0 send 1/10; 1 (other paths) 2/10; 0 solve 1/10; "; got != want {
		t.Errorf("what was merged:\n got %s\nwant %s", got, want)
	}
	b.Reset()
	if got := text(b); got != "" || b.Depth() != callpath.MaxDepth {
		t.Errorf("after a reset there is %s, to depth %d", got, b.Depth())
	}
}

func TestFindAndAddDoNotAllocate(t *testing.T) {
	tree := callpath.New(100)
	add(tree, call{"mab", 1})
	n := testing.AllocsPerRun(100, func() {
		n := tree.Find(tree.Find(tree.Find(callpath.Root, 'm'), 'a'), 'b')
		tree.Add(n, 1, 3)
	})
	if n != 0 {
		t.Errorf("%v allocations for a call", n)
	}
}

// FuzzDecode merges lists that come from bytes into trees.
func FuzzDecode(f *testing.F) {
	tree := callpath.New(10)
	for _, path := range []string{"a", "ab", "abc", "b", "ba"} {
		add(tree, call{path, 7})
	}
	f.Add(uint8(10), callpath.AppendBinary(nil, tree.Append(nil, nil)))
	f.Add(uint8(0), []byte{1, 0, 1, 1, 1, 5, 1, 1})
	f.Add(uint8(1), []byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1, 2, 1, 1, 1})
	f.Fuzz(func(t *testing.T, depth uint8, data []byte) {
		list, err := callpath.Decode(nil, data)
		if err != nil {
			return
		}
		again, err := callpath.Decode(nil, callpath.AppendBinary(nil, list))
		if err != nil || !slices.Equal(again, list) {
			t.Fatalf("%v became %v, %v", list, again, err)
		}
		tree := callpath.New(10)
		tree.Merge(int(depth), list)
		want, got := callpath.Sums{}, callpath.Sums{}
		for _, e := range list {
			want.Calls, want.Exclusive = want.Calls+e.Calls, want.Exclusive+e.Exclusive
		}
		out := callpath.Sort(tree.Append(nil, nil), func(a, b uint32) int { return cmp.Compare(a, b) })
		for i, e := range out {
			got.Calls, got.Exclusive = got.Calls+e.Calls, got.Exclusive+e.Exclusive
			if e.Parent >= int32(i) {
				t.Fatalf("the parent of path %d is %d", i, e.Parent)
			}
		}
		if got.Calls != want.Calls || tree.ExceedsLimit() || tree.Len() > 21 {
			t.Fatalf("%v became %v", list, out)
		}
	})
}
