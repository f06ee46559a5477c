package api

// ProblemKind classifies problems.
type ProblemKind int

// The kinds of problems.
const (
	Internal    ProblemKind = iota
	Invalid                 // invalid request
	NotFound                // unknown name
	Forbidden               // not permitted
	Unavailable             // retry later
	TooLarge                // too many bytes
	TimedOut                // timeout
)

// Problem is the reason for a missing answer, with a hint.
type Problem struct {
	Kind    ProblemKind `json:"-"`
	Message string      `json:"error"`
	Hint    string      `json:"hint,omitempty"`
}

// Error returns the message with its hint.
func (p *Problem) Error() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + "; " + p.Hint
}
