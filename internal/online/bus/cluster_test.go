package bus

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/chimbuko/chimbuko/internal/testkit/tracetest"
)

// startCluster runs plain nats-servers until the test ends and returns them by name.
func startCluster(t *testing.T, size int) (all map[string]*server.Server, urls string) {
	t.Helper()
	tracetest.SkipShort(t, "starts servers")
	routes := make([]*url.URL, size)
	ports := make([]int, size)
	for i := range size {
		ports[i] = tracetest.ReservePort(t)
		routes[i] = &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", ports[i])}
	}
	all = make(map[string]*server.Server)
	var list []string
	for i, port := range ports {
		name := fmt.Sprint("server", i)
		s, err := server.NewServer(&server.Options{
			ServerName: name, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), Routes: routes,
			MaxPayload: 64 << 10, // less than the default
			Cluster:    server.ClusterOpts{Name: "cluster", Host: "127.0.0.1", Port: port, PoolSize: -1},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		all[name] = s
		list = append(list, s.ClientURL())
	}
	return all, strings.Join(list, ",")
}

func TestClusterSurvivesLossOfServer(t *testing.T) {
	t.Parallel() // it waits for elections most of the time
	servers, urls := startCluster(t, 3)
	c := connect(t, Options{URL: urls})
	s := openStream(t, c, StreamOptions{Replicas: 3})
	publishSome(t, s, 3)
	publish(t, s, "big", largeText(3<<20))
	reader := consume(t, openStream(t, connect(t, Options{URL: urls}), StreamOptions{}))
	got := fetch(t, reader, 2)
	ack(t, reader, got[0])
	serve(t, connect(t, Options{URL: urls}), "echo", "", 1, echo)

	info, err := s.info(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	leader := servers[info.Cluster.Leader]
	leader.Shutdown()
	leader.WaitForShutdown()

	eventually(t, "a message can be published", func() bool { return s.Publish(soon(t), "s.x", "after", nil) == nil })
	got = append(got, fetchAll(t, reader, 3)...)
	wantIDs(t, got, "0 1 2 big after")
	if !bytes.Equal(got[3].Data, largeText(3<<20)) {
		t.Error("the big message has changed")
	}
	ack(t, reader, got[4])
	wantPending(t, s, 0)
	data := bytesOf(2, 3<<20)
	eventually(t, "a request is answered", func() bool {
		got, err := c.Request(soon(t), "echo", data)
		return err == nil && bytes.Equal(got, data)
	})
}

// fetchAll is fetch that tolerates lost connections.
func fetchAll(t *testing.T, c *Consumer, n int) (all []Message) {
	t.Helper()
	for end := time.Now().Add(patience); len(all) < n; {
		got, err := c.Fetch(t.Context(), n-len(all), time.Second)
		if time.Now().After(end) || err != nil && !errors.Is(err, ErrNotConnected) {
			t.Fatalf("got %d of %d messages, then %v", len(all), n, err)
		}
		all = append(all, got...)
	}
	return all
}
