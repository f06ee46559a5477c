package api

// ProblemKind says what kind of problem a question had.
type ProblemKind int

// The kinds of problems.
const (
	Internal    ProblemKind = iota
	Invalid                 // the question makes no sense
	NotFound                // nothing of that name is known
	Forbidden               // the answer may not be given, or the change not made
	Unavailable             // ask again later
	TooLarge                // the answer has too many bytes
	TimedOut                // the answer takes too long
)

// Problem is why there is no answer, and what to do about it.
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
