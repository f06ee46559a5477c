package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// natsSigner is an operator with an account that may use JetStream, and a system account,
// which clusters need.
type natsSigner struct {
	accountKey              nkeys.KeyPair
	operator                string // JWT
	system, systemName      string
	account, accountName    string
	operatorKey, systemKeys nkeys.KeyPair
}

func newNATSSigner() (*natsSigner, error) {
	s := new(natsSigner)
	var errs [3]error
	s.operatorKey, errs[0] = nkeys.CreateOperator()
	s.systemKeys, errs[1] = nkeys.CreateAccount()
	s.accountKey, errs[2] = nkeys.CreateAccount()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	name, err1 := s.operatorKey.PublicKey()
	systemName, err2 := s.systemKeys.PublicKey()
	accountName, err3 := s.accountKey.PublicKey()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	operator := jwt.NewOperatorClaims(name)
	operator.Name, operator.SystemAccount = "operator", systemName
	system := jwt.NewAccountClaims(systemName)
	system.Name = "SYS"
	account := jwt.NewAccountClaims(accountName)
	account.Name = "chimbuko"
	account.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: 4 << 30, Streams: 4, Consumer: 64, MaxBytesRequired: true}
	s.systemName, s.accountName = systemName, accountName
	s.operator, err1 = operator.Encode(s.operatorKey)
	s.system, err2 = system.Encode(s.operatorKey)
	s.account, err3 = account.Encode(s.operatorKey)
	return s, errors.Join(err1, err2, err3)
}

// natsRights are the permissions of a user.
type natsRights struct {
	Publish   []string
	Subscribe []string
	Until     time.Time // expiry; never if zero
}

// Credentials creates a user of the account and returns the path of its .creds file.
func (c *natsCluster) Credentials(tb testing.TB, name string, may natsRights) string {
	tb.Helper()
	key, err1 := nkeys.CreateUser()
	if err1 != nil {
		tb.Fatalf("NATS servers: %v", err1)
	}
	public, err1 := key.PublicKey()
	seed, err2 := key.Seed()
	user := jwt.NewUserClaims(public)
	user.Name = name
	user.Pub.Allow.Add(may.Publish...)
	user.Sub.Allow.Add(may.Subscribe...)
	if !may.Until.IsZero() {
		user.Expires = may.Until.Unix()
	}
	signed, err3 := user.Encode(c.signer.accountKey)
	if err := errors.Join(err1, err2, err3); err != nil {
		tb.Fatalf("NATS servers: %v", err)
	}
	file, err := jwt.FormatUserConfig(signed, seed)
	if err != nil {
		tb.Fatalf("NATS servers: %v", err)
	}
	path := filepath.Join(c.dir, name+".creds")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		tb.Fatalf("NATS servers: %v", err)
	}
	return path
}
