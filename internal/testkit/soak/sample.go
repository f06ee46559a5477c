package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is the state of the services at one time.
type sample struct {
	at         time.Duration
	rss        float64 // bytes
	heap       float64 // bytes
	goroutines float64
	files      float64
	anomalies  float64 // most so far
}

// routes are the queries of a person who uses the page.
var routes = []string{
	"snapshot", "overview", "heatmap", "ranks", "findings", "top", "events?limit=100", "functions", "flame", "counters", "pipeline",
	"search?q=main",
}

// query queries the services until ctx ends: all routes, SQL, and an event stream that it leaves.
func (s *soak) query(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		var err error
		switch n := i % (len(routes) + 2); n {
		case len(routes):
			body := strings.NewReader(`{"sql":"SELECT count(*) FROM anomalies"}`)
			err = s.request(ctx, http.MethodPost, "sql", body)
		case len(routes) + 1:
			leave, cancel := context.WithTimeout(ctx, 2*time.Second)
			_ = s.request(leave, http.MethodGet, "stream", nil) // ends with its context
			cancel()
		default:
			err = s.request(ctx, http.MethodGet, routes[n], nil)
		}
		if ctx.Err() != nil {
			return
		}
		s.queries.Add(1)
		if err != nil {
			s.fails.Add(1)
			fmt.Println("query:", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// request sends a request about the run with a new connection.
func (s *soak) request(ctx context.Context, method, route string, body io.Reader) error {
	resp, err := s.send(ctx, method, "api/v1/runs/"+url.PathEscape(s.name)+"/"+route, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 400 {
		err = fmt.Errorf("%s: %s: %s", route, resp.Status, text)
	}
	return err
}

func (s *soak) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.web, "/")+"/"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // reconnect
	return http.DefaultClient.Do(req)
}

// sampleAll samples the services until ctx ends.
func (s *soak) sampleAll(ctx context.Context) {
	start := time.Now()
	ticks := time.NewTicker(max(time.Second, s.length/240))
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			x, err := s.sample(ctx)
			if err != nil {
				continue // counted by query
			}
			x.at = time.Since(start)
			if n := len(s.samples); n > 0 { // the counts of killed analyzers are missing for a while
				x.anomalies = max(x.anomalies, s.samples[n-1].anomalies)
			}
			s.samples = append(s.samples, x)
		}
	}
}

// sample reads the metrics of the services.
func (s *soak) sample(ctx context.Context) (x sample, err error) {
	resp, err := s.send(ctx, http.MethodGet, "metrics", nil)
	if err != nil {
		return x, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	into := map[string]*float64{
		"process_resident_memory_bytes": &x.rss, "go_memstats_heap_alloc_bytes": &x.heap, "go_goroutines": &x.goroutines,
		"process_open_fds": &x.files, "chimbuko_anomalies_total": &x.anomalies,
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if p := into[name]; p != nil {
			v, err := strconv.ParseFloat(value[strings.LastIndexByte(value, ' ')+1:], 64)
			if err != nil {
				return x, err
			}
			*p += v
		}
	}
	if x.rss == 0 || x.goroutines == 0 {
		return x, errors.New("no metrics")
	}
	return x, nil
}

// Growth in the second half of the run that does not count as a leak. Goroutines and descriptors
// depend on the requests at the time of a sample, and memory on the garbage collector and on the log of
// the store. The store has a sample of the anomalies (ADR 45).
const (
	moreGoroutines = 20
	moreFiles      = 20
	moreMemory     = 64 << 20
	fewSamples     = 40
	rows           = 12
)

// judge prints the samples and returns an error if something grows in the second half.
func (s *soak) judge() error {
	all := s.samples
	if len(all) < fewSamples {
		return fmt.Errorf("only %d samples: run longer", len(all))
	}
	fmt.Printf("%8s %10s %10s %11s %6s %10s\n", "time", "RSS MB", "heap MB", "goroutines", "files", "anomalies")
	for i := range rows {
		part := all[i*len(all)/rows : (i+1)*len(all)/rows]
		x := median(part)
		fmt.Printf("%8s %10.0f %10.0f %11.0f %6.0f %10.0f\n", x.at.Round(time.Second), x.rss/1e6, x.heap/1e6, x.goroutines, x.files, x.anomalies)
	}
	third, last := median(all[len(all)/2:len(all)*3/4]), median(all[len(all)*3/4:])
	// The distance of the medians is half the length of the second half, so twice it is the growth.
	grown := func(f func(sample) float64) float64 { return 2 * (f(last) - f(third)) }
	var errs []error
	check := func(name string, got, most float64) {
		fmt.Printf("growth of %s in the second half: %.0f (at most %.0f)\n", name, got, most)
		if got > most {
			errs = append(errs, fmt.Errorf("%s grow by %.0f in the second half, more than %.0f", name, got, most))
		}
	}
	check("goroutines", grown(func(x sample) float64 { return x.goroutines }), moreGoroutines)
	check("open files", grown(func(x sample) float64 { return x.files }), moreFiles)
	check("bytes of memory", grown(func(x sample) float64 { return x.rss }), moreMemory)
	return errors.Join(errs...)
}

// median returns the median of each field.
func median(part []sample) (x sample) {
	middle := func(f func(sample) float64) float64 {
		values := make([]float64, len(part))
		for i := range part {
			values[i] = f(part[i])
		}
		slices.SortFunc(values, cmp.Compare[float64])
		return values[len(values)/2]
	}
	return sample{
		at: part[len(part)/2].at, rss: middle(func(x sample) float64 { return x.rss }), heap: middle(func(x sample) float64 { return x.heap }),
		goroutines: middle(func(x sample) float64 { return x.goroutines }), files: middle(func(x sample) float64 { return x.files }),
		anomalies: middle(func(x sample) float64 { return x.anomalies }),
	}
}
