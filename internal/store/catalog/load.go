package catalog

import (
	"encoding/json"
	"fmt"
)

// Loader reads the entries of one kind from any store.
type Loader struct {
	Kind   Kind
	SQL    string // selects all entries of the run $1 from a table x
	Number string // column with the number of an entry
	Func   string // column with the number of the function of a model, or 0 for other kinds
	// Read adds a row to the catalog.
	Read func(c *Catalog, scan func(...any) error) error
}

// Loaders read all entries of a run.
var Loaders = []Loader{
	{
		SQL:  "SELECT x.pid, x.fn, x.fid, x.name FROM functions x WHERE x.run = $1",
		Kind: Functions, Number: "fn", Func: "0",
		Read: func(c *Catalog, scan func(...any) error) error {
			var x Function
			err := scan(&x.Program, &x.N, &x.FID, &x.Name)
			c.Load(Entries{Functions: []Function{x}})
			return err
		},
	},
	{
		SQL:  "SELECT x.pid, x.path, to_json(x.fns)::VARCHAR FROM paths x WHERE x.run = $1",
		Kind: Paths, Number: "path", Func: "0",
		Read: func(c *Catalog, scan func(...any) error) error {
			var x Path
			err := scanJSON(scan, &x.Funcs, &x.Program, &x.N)
			c.Load(Entries{Paths: []Path{x}})
			return err
		},
	},
	{
		SQL:  "SELECT x.pid, x.fn, x.model, x.params::VARCHAR FROM models x WHERE x.run = $1",
		Kind: Models, Number: "model", Func: "x.fn",
		Read: func(c *Catalog, scan func(...any) error) error {
			var x Model
			err := scanJSON(scan, &x.Params, &x.Program, &x.Func, &x.N)
			c.Load(Entries{Models: []Model{x}})
			return err
		},
	},
	{
		SQL: fmt.Sprintf(`SELECT x.pid, x.sample, x."timestamp", to_json(x.state)::VARCHAR FROM samples x
			WHERE x.run = $1 AND x.sample > (SELECT max(m.sample) - %d FROM samples m WHERE m.run = x.run AND m.pid = x.pid)`, MaxSamples),
		Kind: Samples, Number: "sample", Func: "0",
		Read: func(c *Catalog, scan func(...any) error) error {
			var x Sample
			err := scanJSON(scan, &x.State.Data, &x.Program, &x.N, &x.State.Timestamp)
			c.Load(Entries{Samples: []Sample{x}})
			return err
		},
	},
}

// scanJSON scans columns, then one whose text is the JSON of v.
func scanJSON(scan func(...any) error, v any, columns ...any) error {
	var text string
	if err := scan(append(columns, &text)...); err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), v)
}
