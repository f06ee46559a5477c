package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// wire describes what happens to the packets of one host to another.
type wire struct {
	Cut   bool
	Delay time.Duration
	Loss  float64 // share of the packets that are dropped
}

func (w wire) join(other wire) wire {
	return wire{w.Cut || other.Cut, w.Delay + other.Delay, max(w.Loss, other.Loss)}
}

// wires holds the wires between hosts, one for each direction.
type wires struct {
	mu     sync.Mutex
	random *rand.Rand
	all    map[[2]int]wire
}

func newWires(seed uint64) *wires {
	return &wires{random: rand.New(rand.NewPCG(seed, 1)), all: map[[2]int]wire{}}
}

// replace sets all wires; the others work.
func (w *wires) replace(all map[[2]int]wire) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = all
}

// next returns what happens to the next packet: it is dropped, or delivered after a delay.
func (w *wires) next(from, to int) (dropped bool, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.all[[2]int{from, to}]
	return one.Cut || one.Loss > 0 && w.random.Float64() < one.Loss, one.Delay
}

// isCut reports whether no packet is delivered.
func (w *wires) isCut(from, to int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all[[2]int{from, to}].Cut
}

// fabric is hosts that can only reach each other, through wires.
type fabric interface {
	// Command returns the beginning of a command that runs on a host.
	Command(host int) []string
	// Address returns the address at which processes of a host listen.
	Address(host int) string
	// Reach returns where the other hosts reach a port of a host.
	Reach(host, port int) string
	// Share lets a host connect to an address of the loopback interface of another host,
	// as ssh -L does.
	Share(t testing.TB, from, to int, address string) error
}

var useProxies = flag.Bool("proxies", false, "connect hosts by proxies even if network namespaces are permitted")

// newFabric connects hosts by wires: network namespaces and a switch in this process. Where
// namespaces are not permitted, hosts are connected by proxies on the loopback interface,
// which recognize the dialing host by a text in what it sends first. Both are gone when the
// test has ended.
func newFabric(t testing.TB, w *wires, marks []string) fabric {
	t.Helper()
	if !*useProxies {
		f, err := newSwitch(t, w, len(marks))
		if err == nil {
			return f
		}
		t.Logf("NOT TESTED WITH NETWORK NAMESPACES, but with proxies on the loopback interface: %v", err)
	}
	return &proxies{t: t, wires: w, marks: marks, listeners: map[[2]int]net.Listener{}}
}

func TestFabricCutsDelaysAndHeals(t *testing.T) {
	f := func(name string, make func(testing.TB, *wires, []string) fabric) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWires(1)
			marks := []string{"host zero", "host one"}
			fab := make(t, w, marks)
			at := startEcho(t, fab, 1)
			say := func() *process { return startPeer(t, fab, 0, "dial:"+at) }
			say().succeed()
			for _, one := range []map[[2]int]wire{{{0, 1}: {Cut: true}}, {{1, 0}: {Cut: true}}} {
				w.replace(one)
				p := say()
				select {
				case <-p.ended:
					t.Errorf("%v: the client has an answer: %s", one, p.stdout.String())
				case <-time.After(300 * time.Millisecond):
				}
				w.replace(nil)
				p.succeed()
				contains(t, p.stdout.String(), "host zero")
			}
			const delay = 200 * time.Millisecond
			w.replace(map[[2]int]wire{{0, 1}: {Delay: delay, Loss: 0.2}, {1, 0}: {Delay: delay}})
			start := time.Now()
			say().succeed()
			if took := time.Since(start); took < 2*delay {
				t.Errorf("an answer took only %v", took)
			}
		})
	}
	f("switch", func(t testing.TB, w *wires, marks []string) fabric {
		s, err := newSwitch(t, w, len(marks))
		if err != nil {
			t.Skipf("SKIP: NOT TESTED WITH NETWORK NAMESPACES: %v", err)
		}
		return s
	})
	f("proxies", func(t testing.TB, w *wires, marks []string) fabric {
		return &proxies{t: t, wires: w, marks: marks, listeners: map[[2]int]net.Listener{}}
	})
}

// fabricPeer makes this program a peer for the test of fabrics, in another network namespace.
var fabricPeer = flag.String("fabric-peer", "", "echo:ADDRESS answers the first line of connections, dial:ADDRESS sends one and prints the answer")

// runPeer runs a peer.
func runPeer(what string) error {
	what, address, _ := strings.Cut(what, ":")
	if what == "dial" {
		c, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
		if err != nil {
			return err
		}
		fmt.Fprintln(c, "host zero")
		_, err = io.Copy(os.Stdout, c)
		return err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			line, _ := bufio.NewReader(c).ReadString('\n')
			_, _ = io.WriteString(c, line)
			_ = c.Close()
		}()
	}
}

// startPeer starts a peer on a host.
func startPeer(t testing.TB, f fabric, host int, what string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startAs(t, what, nil, append(f.Command(host), self, "-fabric-peer", what))
}

// startEcho starts a server on a host that returns the line that it receives, and returns
// where others reach it.
func startEcho(t testing.TB, f fabric, host int) string {
	t.Helper()
	p := startPeer(t, f, host, "echo:"+net.JoinHostPort(f.Address(host), "0"))
	port := 0
	eventually(t, "the echo server listens", func() (err error) {
		_, err = fmt.Sscan(p.stdout.String(), &port)
		return err
	})
	return f.Reach(host, port)
}
