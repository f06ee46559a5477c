package option

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/chimbuko/chimbuko/internal/online/node"
	"github.com/chimbuko/chimbuko/internal/source/sst"
)

// RegisterBus adds the flags for the connection to a message bus.
func RegisterBus(f *pflag.FlagSet, b *node.Bus) {
	f.StringVar(&b.URL, "nats", "", "URL of a NATS server or cluster (several with commas) instead of the one in the run directory")
	f.StringVar(&b.TokenFile, "nats-token-file", "", "file with the token for --nats")
	f.StringVar(&b.Credentials, "nats-creds", "", "file with the credentials (.creds) for --nats")
	f.StringVar(&b.CA, "nats-ca", "", "file with the certificate authority of --nats")
	f.StringVar(&b.Cert, "nats-cert", "", "file with the client certificate for --nats")
	f.StringVar(&b.Key, "nats-key", "", "file with the key of the client certificate")
}

// RegisterConnect adds the flag for commands that read live streams.
func RegisterConnect(f *pflag.FlagSet, timeout *time.Duration) {
	f.DurationVar(timeout, "connect-timeout", sst.Default().ConnectTimeout,
		"time to wait for the contact file of a live stream, and for its program; 0 to wait forever")
}

// Args returns the command line arguments that set a flag to its value.
func Args(f *pflag.Flag) (args []string) {
	values := []string{f.Value.String()}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values = list.GetSlice()
	}
	for _, v := range values {
		args = append(args, "--"+f.Name+"="+v)
	}
	return args
}
