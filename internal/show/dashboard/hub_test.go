package dashboard

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chimbuko/chimbuko/internal/show/api"

	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

type counting struct{ n int }

func (c *counting) Status(context.Context) (*api.Status, error) { c.n++; return new(api.Status), nil }
func (c *counting) Reader() provdb.Reader                       { return nil }

// Nobody looks at the pipeline when nobody asks; synctest fails if the looking
// goes on.
func TestLookingEndsWithTheLastStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(counting)
		h := &hub{source: source, every: time.Second, most: 10}
		for round := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			ticks, leave, err := h.join(ctx)
			if err != nil {
				t.Fatal(err)
			}
			other, leaveToo, err := h.join(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for range 3 {
				<-ticks
			}
			if took := time.Since(begin); took != 2*time.Second {
				t.Errorf("three ticks took %v", took)
			}
			cancel()
			leave()
			time.Sleep(10*time.Second + time.Millisecond) //nolint:forbidigo // the clock is that of synctest
			if got := (<-other).seq; got != int64(13*(round+1)) {
				t.Errorf("a slow reader sees tick %d, not the newest", got)
			}
			leaveToo()
			asked := source.n
			time.Sleep(time.Minute) //nolint:forbidigo // the clock is that of synctest
			if source.n != asked {
				t.Errorf("the source was asked %d times for nobody", source.n-asked)
			}
		}
	})
}
