package dashboard

// The texts of the page's sentences, for others that show the same answers.

// ShortName is the name of a function for a line of text: without the place in the
// source that TAU adds, without control characters, and with at most 70 characters.
func ShortName(name string) string { return shortName(name) }

// OneLine is a text without control characters and with at most 70 characters.
func OneLine(text string) string { return oneLine(text) }

// Clock is a time since the begin of a run of some length, both in seconds.
func Clock(seconds, length float64) string { return clock(seconds, length) }

// Percent is a percentage with as many digits as say something.
func Percent(v float64) string { return percentText(v) }

// About is a large number in short: 41 M.
func About(n int64) string { return about(n) }
