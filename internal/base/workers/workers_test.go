package workers_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/chimbuko/chimbuko/internal/base/workers"
)

func TestInOrderKeepsOrder(t *testing.T) {
	items := make([]int, 200)
	for i := range items {
		items[i] = i
	}
	var got []int
	var calls atomic.Int64
	blocked := make(chan struct{})
	err := workers.InOrder(t.Context(), 3, items, func(_ context.Context, i int) error {
		switch {
		case i == 0:
			<-blocked // the others do not wait for the first
		case calls.Add(1) == int64(len(items)-1):
			close(blocked)
		}
		return nil
	}, func(i int) { got = append(got, i) })
	if err != nil || !slices.Equal(got, items) {
		t.Errorf("got order %v, error %v; want %v", got, err, items)
	}
}

func TestOneWorkerAlternates(t *testing.T) {
	var got []int
	want := errors.New("damaged")
	err := workers.InOrder(t.Context(), 1, []int{1, 2, 3, 4}, func(_ context.Context, i int) error {
		if i == 3 {
			return want
		}
		got = append(got, i)
		return nil
	}, func(i int) { got = append(got, -i) })
	if !errors.Is(err, want) || !slices.Equal(got, []int{1, -1, 2, -2}) {
		t.Errorf("got %v, error %v; want 1 -1 2 -2, error %v", got, err, want)
	}
}

func TestInOrderStopsAtError(t *testing.T) {
	want := errors.New("damaged")
	var got []int
	err := workers.InOrder(t.Context(), 2, []int{0, 1, 2, 3}, func(_ context.Context, i int) error {
		if i == 2 {
			return want
		}
		return nil
	}, func(i int) { got = append(got, i) })
	if !errors.Is(err, want) || slices.Contains(got, 2) || slices.Contains(got, 3) {
		t.Errorf("got %v for items %v, want %v and no item from 2 on", err, got, want)
	}
}
