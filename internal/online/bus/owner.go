package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// owner is the right to be the consumer of a stream. It is a consumer at the server
// whose name is
//
//	durable - claim - serial
//
// with the greatest claim of all. Who takes over claims a greater one.
type owner struct {
	stream  *Stream
	durable string
	claimed claim
	serial  int    // the owner's consumers are numbered
	name    string // of the current one
}

// claim is an epoch, in hexadecimal digits, and random characters. Claims are
// compared as text.
type claim string

const (
	epochDigits  = 8
	randomChars  = 10
	serialDigits = 6
	forgotten    = time.Hour // after which the server deletes a consumer that nobody uses
)

func newClaim(epoch uint64) claim {
	return claim(fmt.Sprintf("%0*x-%s", epochDigits, epoch, rand.Text()[:randomChars]))
}

func (c claim) epoch() uint64 {
	n, _ := strconv.ParseUint(string(c[:epochDigits]), 16, 32) // parse has seen it
	return n
}

// take makes a consumer that begins at a sequence and claims to be greater than all
// others, one of our own among them: the server may have died while we took over.
func (o *owner) take(ctx context.Context, from uint64) error {
	o.name = ""
	others, err := o.others(ctx)
	if err != nil {
		return err
	}
	epoch := uint64(1)
	for _, c := range others {
		epoch = max(epoch, c.epoch()+1)
	}
	o.claimed = newClaim(epoch)
	return o.renew(ctx, from)
}

// renew makes a consumer that begins at a sequence and deletes all others. It fails
// with ErrTaken when there is one with a greater claim.
func (o *owner) renew(ctx context.Context, from uint64) error {
	if _, err := o.rivals(ctx); err != nil {
		return err
	}
	o.serial++
	o.name = fmt.Sprintf("%s-%s-%0*x", o.durable, o.claimed, serialDigits, o.serial)
	_, err := o.stream.nats.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: o.name, AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: forgotten,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1),
	})
	if err != nil {
		return err
	}
	// Of two who come at the same time, one at least sees the other's here.
	others, err := o.rivals(ctx)
	if errors.Is(err, ErrTaken) {
		return errors.Join(err, o.remove(ctx, o.name))
	}
	for name := range others {
		err = errors.Join(err, o.remove(ctx, name))
	}
	return err
}

// rivals are the others, none of whom has a greater claim.
func (o *owner) rivals(ctx context.Context) (map[string]claim, error) {
	others, err := o.others(ctx)
	for _, c := range others {
		if c > o.claimed {
			return nil, ErrTaken
		}
	}
	return others, err
}

// others are the claims of all but the current consumer, by name.
func (o *owner) others(ctx context.Context) (map[string]claim, error) {
	found := make(map[string]claim)
	list := o.stream.nats.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Config.Durable == "" || info.Name == o.name {
			continue // of someone who looks on, or ours
		}
		c, ok := o.parse(info.Name)
		if !ok {
			return nil, fmt.Errorf("the stream %s has the consumer %s, and can have no other", o.stream.name, info.Name)
		}
		found[info.Name] = c
	}
	return found, list.Err()
}

func (o *owner) parse(name string) (c claim, ok bool) {
	rest, ok := strings.CutPrefix(name, o.durable+"-")
	const end = epochDigits + 1 + randomChars
	if !ok || len(rest) != end+1+serialDigits || rest[epochDigits] != '-' || rest[end] != '-' {
		return "", false
	}
	_, err := strconv.ParseUint(rest[:epochDigits], 16, 32)
	return claim(rest[:end]), err == nil
}

// remove deletes a consumer; that it is gone is no error.
func (o *owner) remove(ctx context.Context, name string) error {
	err := o.stream.nats.DeleteConsumer(ctx, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return err
}
