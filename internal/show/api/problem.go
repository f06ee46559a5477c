package api

import "fmt"

// The usual statuses of problems, as in HTTP.
const (
	Invalid     = 400 // invalid request
	Forbidden   = 403 // not permitted
	NotFound    = 404 // unknown name
	TooLarge    = 413 // too many bytes
	Internal    = 500
	Unavailable = 503 // retry later
	TimedOut    = 504 // timeout
)

// Problem is the reason for a missing answer, with a hint.
type Problem struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
}

// ParamsHint is the hint of problems with parameters.
const ParamsHint = "docs/api.md lists the parameters"

// Problemf returns a problem with a formatted message.
func Problemf(status int, hint, format string, args ...any) error {
	return &Problem{Status: status, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Error returns the message with its hint.
func (p *Problem) Error() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + "; " + p.Hint
}
