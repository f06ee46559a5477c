package provdb

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// WriteCSV writes rows as CSV with a header. Values are exact; NULL is empty.
func WriteCSV(w io.Writer, rows *Rows) error {
	c := csv.NewWriter(w)
	line := make([]string, len(rows.Columns))
	for i := range rows.Columns {
		line[i] = rows.Columns[i].Name
	}
	err := c.Write(line)
	for row, rowErr := range rows.All {
		if err = errors.Join(err, rowErr); err != nil {
			break
		}
		for i, v := range row {
			line[i] = PlainText(v)
		}
		err = c.Write(line)
	}
	c.Flush()
	return errors.Join(err, c.Error())
}

// PlainText formats a value of a row without loss.
func PlainText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case json.RawMessage:
		return string(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}
