package storetest

import (
	"github.com/chimbuko/chimbuko/internal/store/provdb"
)

var closeTests = []test{
	{"a closed store returns ErrClosed", func(f *fixture) {
		f.close()
		_, err := f.store.CreateRun(f.Context(), provdb.Run{Name: "new", State: provdb.Running, Started: started})
		f.wantError(provdb.ErrClosed, err)
		f.wantError(provdb.ErrClosed, f.store.UpdateRun(f.Context(), provdb.Run{ID: f.run, State: provdb.Failed, Started: started}))
		f.wantError(provdb.ErrClosed, f.store.DeleteRun(f.Context(), f.run))
		f.wantError(provdb.ErrClosed, f.store.Write(f.Context(), f.run, full(1, 1)))
		_, err = f.store.Query(f.Context(), "SELECT 1")
		f.wantError(provdb.ErrClosed, err)
		_ = f.store.Close() // must not panic
	}},
	{"unread rows do not block Close", func(f *fixture) {
		f.write(full(20, 1))
		unread, err := f.store.Query(f.Context(), "SELECT doc FROM anomalies_json")
		if err != nil {
			f.Fatal(err)
		}
		f.close()
		if all, err := unread.Collect(); err == nil && len(all) != 20 {
			f.Errorf("got %d rows of 20 and no error", len(all))
		}
		_ = unread.Close() // must not panic
	}},
	{"Close ends running queries", func(f *fixture) {
		began, ended := make(chan struct{}), make(chan error)
		go func() {
			close(began)
			ended <- f.failure(endless)
		}()
		<-began
		f.close()
		if err := <-ended; err == nil {
			f.Error("an endless query succeeded")
		}
	}},
	{"Close waits for writes", func(f *fixture) {
		began, ended := make(chan struct{}), make(chan error)
		go func() {
			close(began)
			ended <- f.store.Write(f.Context(), f.run, full(300, 1))
		}()
		<-began
		f.close()
		if err := <-ended; err != nil {
			f.wantError(provdb.ErrClosed, err) // it started after Close
		}
	}},
}

func (f *fixture) close() {
	f.Helper()
	if err := f.store.Close(); err != nil {
		f.Fatal(err)
	}
}
