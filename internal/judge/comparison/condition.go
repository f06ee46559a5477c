package comparison

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/chimbuko/chimbuko/internal/show/api"
)

// Condition is an upper limit of a change, such as lost>2%.
type Condition struct {
	text, name string
	limit      float64
	percent    bool
}

var conditionForm = regexp.MustCompile(`^\s*(lost|time|anomalies|new|worse)\s*>\s*([0-9.]+)\s*(%?)\s*$`)

// ParseCondition parses NAME>NUMBER or NAME>NUMBER%. NAME is lost, time, anomalies, new or worse. The last two are numbers of
// call paths and take no %.
func ParseCondition(text string) (*Condition, error) {
	m := conditionForm.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%q is not of the form lost>2%%, with lost, time, anomalies, new or worse", text)
	}
	limit, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	if m[3] != "" && (m[1] == "new" || m[1] == "worse") {
		return nil, fmt.Errorf("%q: %s is a number of call paths, without %%", text, m[1])
	}
	return &Condition{text, m[1], limit, m[3] != ""}, nil
}

// Exceeded reports whether a difference exceeds the limit, and explains by which value.
func (c *Condition) Exceeded(d *api.Difference) (why string, exceeded bool) {
	v, unit := c.value(d), ""
	if c.percent {
		unit = "%"
	}
	return fmt.Sprintf("%s: it is %.4g%s", c.text, v, unit), v > c.limit
}

func (c *Condition) value(d *api.Difference) float64 {
	var a, b float64
	switch c.name {
	case "lost":
		if c.percent {
			return d.LostPercent[1] - d.LostPercent[0]
		}
		a, b = d.Lost[0], d.Lost[1]
	case "time":
		a, b = d.Exclusive[0], d.Exclusive[1]
	case "anomalies":
		a, b = float64(d.Anomalies[0]), float64(d.Anomalies[1])
	default:
		return float64(d.Counts.Changes[c.name])
	}
	if c.percent {
		return 100 * (b - a) / max(a, 1)
	}
	return b - a
}
