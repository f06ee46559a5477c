package recordstream

import (
	"errors"
	"fmt"
	"testing"

	"github.com/chimbuko/chimbuko/internal/testkit/damage"
)

// TestDamagedMessages decodes mutations of messages with records.
func TestDamagedMessages(t *testing.T) {
	all := records()
	damage.Run(t, damage.Format{
		Files: damage.Files{"message": encode(all...)}, Others: []damage.Files{{"message": encode(all[:3]...)}},
		Read: func(files damage.Files) error {
			got, err := ReadRecords(files["message"])
			if err != nil && !errors.Is(err, errEncoding) {
				return fmt.Errorf("unclear error: %w", err)
			}
			if err == nil {
				if _, err := ReadRecords(encode(got...)); err != nil {
					return fmt.Errorf("accepted records cannot be read again: %w", err)
				}
			}
			return nil
		},
	})
}
