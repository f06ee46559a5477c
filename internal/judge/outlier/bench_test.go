package outlier_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chimbuko/chimbuko/internal/judge/outlier"
)

// benchmarked are the models of a typical function, with some 100 bins, and of one whose
// times are spread over six decades; both changed little in ten minutes.
func benchmarked() map[string]*outlier.Model {
	r := rand.New(rand.NewPCG(20, 1))
	all := map[string]*outlier.Model{"typical": {}, "wide": {}}
	for i := range int64(100_000) {
		at := i * 6000
		all["typical"].Learn(int64(1000+50*r.NormFloat64()), at)
		all["wide"].Learn(int64(10*math.Pow(10, 6*r.Float64())), at)
	}
	return all
}

// against makes the benchmark report how many times longer it takes than work.
func against(b *testing.B, work func()) {
	const most = 50 * time.Millisecond
	begin, n := time.Now(), 0
	for ; time.Since(begin) < most; n++ {
		work()
	}
	each := float64(time.Since(begin).Nanoseconds()) / float64(n)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/each, "x/hbos")
}

func BenchmarkNewJudge(b *testing.B) {
	models := benchmarked()
	for _, name := range []string{"typical", "wide"} {
		m := models[name]
		b.Run(name, func(b *testing.B) {
			tail, hbos := outlier.NewRules(outlier.Default()), outlier.NewRules(settings(outlier.HBOS))
			b.ReportAllocs()
			for b.Loop() {
				tail.NewJudge("f", m)
			}
			against(b, func() { hbos.NewJudge("f", m) })
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	values := make([]int64, 1024)
	r := rand.New(rand.NewPCG(20, 2))
	for i := range values {
		values[i] = int64(1000 + 50*r.NormFloat64())
	}
	models := benchmarked()
	for _, name := range []string{"typical", "wide"} {
		m := models[name]
		tail, hbos := judge(outlier.Default(), m), judge(settings(outlier.HBOS), m)
		f := func(what string, ask func(j *outlier.Judge, v int64)) {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					for _, v := range values {
						ask(tail, v)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(values)), "ns/call")
				against(b, func() {
					for _, v := range values {
						ask(hbos, v)
					}
				})
			})
		}
		f("suspect", func(j *outlier.Judge, v int64) { j.Suspect(v) })
		f("judge", func(j *outlier.Judge, v int64) { j.Judge(v) })
		f("suspect, then judge", func(j *outlier.Judge, v int64) {
			if j.Suspect(v) {
				j.Judge(v)
			}
		})
	}
}

func BenchmarkLearn(b *testing.B) {
	values := make([]int64, 1024)
	r := rand.New(rand.NewPCG(20, 3))
	for i := range values {
		values[i] = int64(1000 + 50*r.NormFloat64())
	}
	f := func(name string, learn func(m *outlier.Model, v, at int64)) {
		b.Run(name, func(b *testing.B) {
			m := new(outlier.Model)
			at := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				for _, v := range values {
					learn(m, v, at)
					at += 6
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(values)), "ns/call")
		})
	}
	f("with times", func(m *outlier.Model, v, at int64) { m.Learn(v, at) })
	f("without", func(m *outlier.Model, v, _ int64) {
		m.Stats.Add(uint64(v))
		m.Hist.Add(v)
	})
}

func BenchmarkShift(b *testing.B) {
	models := benchmarked()
	for _, name := range []string{"typical", "wide"} {
		m := models[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Shift()
			}
		})
	}
}
