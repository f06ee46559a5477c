package api

// The states of a label.
const (
	LabelOpen     = "open"     // like findings without a label
	LabelMuted    = "muted"    // not listed among the worst
	LabelExpected = "expected" // known behavior
)
