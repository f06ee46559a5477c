package api

// The states of a label.
const (
	LabelOpen     = "open"     // to be looked at, as are issues without a label
	LabelMuted    = "muted"    // not to be shown among the worst
	LabelExpected = "expected" // known to be so
)
