package provdb

import (
	"slices"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// HasFindings reports whether the batch says what is wrong with the run.
func (b *Batch) HasFindings() bool { return len(b.Issues)+len(b.Links) > 0 }

// VoidsFindings reports whether what was found out before holds no longer.
func (b *Batch) VoidsFindings() bool { return len(b.Anomalies)+len(b.Typical) > 0 || b.HasFindings() }

func (c *cleaner) issue(i provenance.Issue) provenance.Issue {
	for _, s := range []*string{&i.Func, &i.Path, (*string)(&i.Kind), (*string)(&i.Role), (*string)(&i.Trend), &i.Example} {
		*s = provenance.Text(*s)
	}
	i.Hosts = slices.Clone(i.Hosts)
	for k := range i.Hosts {
		i.Hosts[k] = provenance.Text(i.Hosts[k])
	}
	return i
}

func (c *cleaner) link(l provenance.Link) provenance.Link {
	for _, s := range []*string{&l.EventID, &l.Culprit, (*string)(&l.Role)} {
		*s = provenance.Text(*s)
	}
	return l
}
