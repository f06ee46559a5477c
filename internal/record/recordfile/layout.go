package recordfile

import (
	"cmp"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chimbuko/chimbuko/internal/base/trace"
	"github.com/chimbuko/chimbuko/internal/store/runfiles"
)

// collection is a kind of records. Each has one file per step.
type collection int

const (
	anomalies collection = iota
	normalexecs
	metadata
	numCollections
)

var collectionNames = [numCollections]string{"anomalies", "normalexecs", "metadata"}

// rankDir is a directory with the files of a rank.
type rankDir struct {
	path    string
	rank    trace.Rank
	program trace.Program

	hasProgram bool // else program is a guess
	fromPath   bool // the path names the program, not the records
}

// stepFiles are the files of a step; missing ones have an empty path.
type stepFiles struct {
	step  int
	paths [numCollections]string
}

// rankDirs yields the directories of ranks in dir, sorted by program and rank, and an error
// for each directory that cannot be read.
func rankDirs(dir string, notes *Notes) iter.Seq2[rankDir, error] {
	return func(yield func(rankDir, error) bool) {
		if sub := filepath.Join(dir, "records"); isDir(sub) {
			dir = sub
		}
		numbers, _, err := numberedDirs(dir, math.MaxUint32)
		if err != nil {
			yield(rankDir{}, err)
			return
		}
		of, err := levelOf(dir, numbers)
		if err == nil && of == levelUnknown && runfiles.Name(dir) != "records" {
			err = fmt.Errorf("%s: no files named PROGRAM/RANK/STEP.anomalies.json, .normalexecs.json or .metadata.json", dir)
		}
		if err != nil {
			yield(rankDir{}, err)
			return
		}
		if of == levelRank {
			program, ok := number(runfiles.Name(dir), math.MaxUint32)
			if !ok {
				program = 0
			}
			yieldRanks(dir, numbers, rankDir{program: trace.Program(program)}, yield)
			return
		}
		for _, n := range numbers {
			path := filepath.Join(dir, strconv.FormatInt(n, 10))
			ranks, others, err := numberedDirs(path, math.MaxInt32)
			if err != nil {
				if !yield(rankDir{}, err) {
					return
				}
				continue
			}
			notes.Add(noteNames, int64(others))
			if !yieldRanks(path, ranks, rankDir{program: trace.Program(n), hasProgram: true, fromPath: true}, yield) {
				return
			}
		}
	}
}

// yieldRanks yields the directories of ranks in dir, as copies of model with path and rank.
func yieldRanks(dir string, ranks []int64, model rankDir, yield func(rankDir, error) bool) bool {
	for _, n := range ranks {
		if n > math.MaxInt32 {
			break
		}
		model.path, model.rank = filepath.Join(dir, strconv.FormatInt(n, 10)), trace.Rank(n)
		if !yield(model, nil) {
			return false
		}
	}
	return true
}

// level is the meaning of numbered directories.
type level int

const (
	levelUnknown level = iota
	levelProgram
	levelRank
)

// levelOf determines the meaning of the numbered directories in dir. If it cannot, and one
// of them cannot be read, it returns that error.
func levelOf(dir string, numbers []int64) (level, error) {
	var unreadable error
	for _, n := range numbers {
		path := filepath.Join(dir, strconv.FormatInt(n, 10))
		entries, err := os.ReadDir(path)
		if err != nil {
			unreadable = err
			continue
		}
		for _, e := range entries {
			if _, _, ok := parseName(e.Name()); ok {
				return levelRank, nil
			}
			if _, ok := number(e.Name(), math.MaxInt32); ok && isDir(filepath.Join(path, e.Name())) {
				return levelProgram, nil
			}
		}
	}
	return levelUnknown, unreadable
}

// numberedDirs returns the directories in dir whose names are numbers, sorted, and the number
// of other names.
func numberedDirs(dir string, most int64) (numbers []int64, others int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		if n, ok := number(e.Name(), most); ok && isDir(filepath.Join(dir, e.Name())) {
			numbers = append(numbers, n)
		} else {
			others++
		}
	}
	slices.Sort(numbers)
	return numbers, others, nil
}

// list finds the files of the rank, sorted by step.
func (d *rankReader) list() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	byStep := make(map[int]int) // index in steps
	for _, e := range entries {
		step, c, ok := parseName(e.Name())
		path := filepath.Join(d.path, e.Name())
		if !ok || !isFile(path, e) {
			d.notes.Add(noteNames, 1)
			continue
		}
		i, ok := byStep[step]
		if !ok {
			i = len(d.steps)
			byStep[step] = i
			d.steps = append(d.steps, stepFiles{step: step})
		}
		d.steps[i].paths[c] = path
	}
	slices.SortFunc(d.steps, func(a, b stepFiles) int { return cmp.Compare(a.step, b.step) })
	return nil
}

// parseName parses names such as 12.anomalies.json.
func parseName(name string) (step int, c collection, ok bool) {
	first, rest, _ := strings.Cut(name, ".")
	n, ok := number(first, math.MaxInt32)
	if !ok {
		return 0, 0, false
	}
	rest, ok = strings.CutSuffix(rest, ".json")
	i := slices.Index(collectionNames[:], rest)
	return int(n), collection(i), ok && i >= 0
}

// number parses a name that is a number without sign and leading zeros.
func number(name string, most int64) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n >= 0 && n <= most && strconv.FormatInt(n, 10) == name
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isFile reports whether an entry is a regular file or a link to one. Opening a pipe could
// block.
func isFile(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular() // opening the file returns the error
}
