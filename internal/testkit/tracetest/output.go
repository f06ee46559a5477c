package tracetest

import "regexp"

// progress matches the lines that an analysis prints after five seconds, on a busy machine also a short one.
var progress = regexp.MustCompile(`(?m)^((reading|reviewing and storing records).*: +\d+ %, .*|` +
	`(closing the store|finding the causes of [\d,]+ anomalies|storing profiles, models and findings)(, for [\dms]+)?)\n`)

// WithoutProgress returns the output of a command without the progress of an analysis.
func WithoutProgress(output string) string { return progress.ReplaceAllString(output, "") }
