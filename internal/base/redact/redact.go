// Package redact removes secrets from texts that are shown or stored. Pure.
package redact

import "regexp"

var (
	password = regexp.MustCompile(`(://[^:@/\s,]*):[^,\s]*@`) // up to the last @, as a password may contain any character
	token    = regexp.MustCompile(`\b((?:nats|tls)://)[^@/\s,]*@`)
	setting  = regexp.MustCompile(`(?i)([?&])password=[^&\s]*&?`) // of PostgreSQL
)

// URLs removes passwords and tokens from all URLs in text.
func URLs(text string) string {
	text = password.ReplaceAllString(text, "$1@")
	text = token.ReplaceAllString(text, "$1")
	return setting.ReplaceAllString(text, "$1")
}
