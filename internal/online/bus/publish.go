package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ackTimeout bounds the wait for a confirmation. If a cluster member dies, its confirmation is lost
// without a report.
const ackTimeout = 10 * time.Second

// codeStoreFailed is the server's error code for messages that it could not store.
const codeStoreFailed jetstream.ErrorCode = 10077

// Publish stores a message and returns nil once the stream has it. The stream drops
// a second message with the same id within two minutes, so after any error but
// ErrTooLarge publish again with the same id and data. A message that is
// larger than the server accepts is compressed. The error is
//   - ErrFull when the stream has no room at present;
//   - ErrNotConnected without a connection, or if it was lost before the server confirmed;
//   - ErrDenied when the server does not let this client publish there;
//   - ErrTooLarge when the compressed message exceeds the limit of the server or of the stream;
//   - the cause of ctx when it ended.
func (s *Stream) Publish(ctx context.Context, subject, id string, data []byte) error {
	if err := s.publish(ctx, subject, id, data); err != nil {
		return fmt.Errorf("publish %s: %w", id, err)
	}
	return nil
}

func (s *Stream) publish(ctx context.Context, subject, id string, data []byte) error {
	limit, err := s.conn.payload(maxPayload)
	if err := errors.Join(err, checkName("subject", subject), checkName("id", id), checkSize(len(data))); err != nil {
		return err
	}
	m := &nats.Msg{Subject: subject, Data: data}
	if len(data) > limit {
		if m.Data, err = compress(data); err != nil {
			return err
		}
		if len(m.Data) > limit {
			return fmt.Errorf("%w: %d bytes, %d compressed, and the server accepts %d (raise its max_payload to %d at most)",
				ErrTooLarge, len(data), len(m.Data), limit, maxPayload)
		}
		setHeader(m, encodingHeader, zstdEncoding)
	}
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	ctx, done, err := s.conn.within(ctx, subject)
	if err != nil {
		return err
	}
	defer done()
	ack, err := s.conn.js.PublishMsg(ctx, m, jetstream.WithMsgID(id))
	if err == nil {
		if ack.Stream != s.name {
			return fmt.Errorf("the subject belongs to the stream %s", ack.Stream)
		}
		s.notePublished(ack.Sequence)
	}
	return s.publishError(ctx, err, len(m.Data))
}

// publishError translates the errors of NATS.
func (s *Stream) publishError(ctx context.Context, err error, size int) error {
	api, _ := errors.AsType[*jetstream.APIError](err)
	switch {
	case api != nil && api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "maximum"):
		if most := s.nats.CachedInfo().Config.MaxBytes; most > 0 && int64(size) > most {
			return fmt.Errorf("%w: %d bytes, and the stream holds %d (raise its size)", ErrTooLarge, size, most)
		}
		return fmt.Errorf("%w: %s", ErrFull, s.name)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		switch _, infoErr := s.nats.Info(ctx); {
		case errors.Is(infoErr, jetstream.ErrStreamNotFound):
			return fmt.Errorf("no stream takes the subject: %w", infoErr)
		case infoErr != nil:
			return fmt.Errorf("the stream has no leader at present: %w", err)
		}
		return fmt.Errorf("no stream takes the subject: %w", err)
	}
	return s.conn.explain(ctx, err)
}

// compress returns data as one frame of Zstandard.
func compress(data []byte) ([]byte, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return w.EncodeAll(data, nil), w.Close()
}

// decompress returns the data of a message, at most MaxMessage bytes. If decompression fails, it
// returns data unchanged, which the consumer rejects.
func decompress(h nats.Header, data []byte) []byte {
	if h.Get(encodingHeader) != zstdEncoding {
		return data
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxMessage))
	if err != nil {
		return data
	}
	defer r.Close()
	all, err := r.DecodeAll(data, nil)
	if err != nil {
		return data
	}
	return all
}
