package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
)

// config returns the configuration file of a server.
func (c *natsCluster) config(s *natsServer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: %s\nlisten: %q\nhttp: %q\n", s.name, c.listen(s, s.client), c.listen(s, s.monitor))
	fmt.Fprintf(&b, "client_advertise: %q\n", c.reach(s, s.client))
	fmt.Fprintf(&b, "jetstream { store_dir: %q, max_file_store: 4GB }\n", filepath.Join(s.dir, "jetstream"))
	tls := ""
	if c.opt.TLS {
		tls = fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q",
			filepath.Join(c.dir, "cert.pem"), filepath.Join(c.dir, "key.pem"), filepath.Join(c.dir, "ca.pem"))
		fmt.Fprintf(&b, "%s, timeout: 5 }\n", tls)
	}
	switch c.opt.Auth {
	case natsOpen:
	case natsToken:
		fmt.Fprintf(&b, "authorization { token: %q }\n", c.Token)
	case natsPassword:
		fmt.Fprintf(&b, "authorization { user: %q, password: %q }\n", c.User, c.Password)
	case natsCredentials:
		fmt.Fprintf(&b, "operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload {\n  %s: %s\n  %s: %s\n}\n",
			c.signer.operator, c.signer.systemName, c.signer.systemName, c.signer.system, c.signer.accountName, c.signer.account)
	}
	if len(c.servers) > 1 {
		fmt.Fprintf(&b, "cluster {\n  name: test\n  listen: %q\n  advertise: %q\n  routes: [", c.listen(s, s.route), c.reach(s, s.route))
		for _, other := range c.servers {
			fmt.Fprintf(&b, " %q,", "nats://"+c.reach(other, other.route))
		}
		b.WriteString(" ]\n")
		if tls != "" {
			fmt.Fprintf(&b, "  %s, verify: true, timeout: 5 }\n", tls)
		}
		b.WriteString("}\n")
	}
	return b.String()
}
