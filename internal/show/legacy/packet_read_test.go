package legacy_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/chimbuko/chimbuko/internal/show/legacy"
	"github.com/chimbuko/chimbuko/internal/testkit/packettest"
)

func TestBothSchemasAreReadTheSame(t *testing.T) {
	var read [2]*legacy.Packet
	for i := range read {
		b, _ := encode(packettest.SmallRun(), i+1, 1_700_000_000_123)
		p, err := legacy.ReadPacket(b)
		if err != nil {
			t.Fatalf("schema %d: %v in %s", i+1, err, b)
		}
		if p.Version != i+1 || p.Created != 1_700_000_000_123 {
			t.Errorf("schema %d: version %d, created %d", i+1, p.Version, p.Created)
		}
		p.Version = 0
		read[i] = p
	}
	if !reflect.DeepEqual(read[0], read[1]) {
		t.Errorf("schema 1 %+v\nschema 2 %+v", read[0], read[1])
	}
	p := read[0]
	if a := p.Anomalies; len(a.Ranks) == 0 || len(a.Ranks[0].Steps) == 0 || len(a.Functions) == 0 || len(p.Metrics) == 0 || len(p.Counters) == 0 {
		t.Errorf("parts are missing: %+v", p)
	}
}

func TestOriginalPacketIsRead(t *testing.T) {
	b, err := os.ReadFile("testdata/sample-packet-v2.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := legacy.ReadPacket(b)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	if p.Version != 2 || p.Created == 0 || len(p.Anomalies.Ranks) == 0 || len(p.Anomalies.Functions) == 0 || len(p.Metrics) == 0 {
		t.Errorf("got %+v of %s", p, b)
	}
}

func TestPacketWithoutNewsIsEmpty(t *testing.T) {
	for text, created := range map[string]int64{
		`{}`: 0, `{"created_at":5,"version":2}`: 5,
		`{"anomaly_stats":{"created_at":7,"anomaly":[],"func":[]}}`: 7,
	} {
		p, err := legacy.ReadPacket([]byte(text))
		if err != nil || p.Created != created || len(p.Anomalies.Ranks)+len(p.Anomalies.Functions)+len(p.Metrics)+len(p.Counters) != 0 {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
}

func TestInvalidPacketIsRejectedWithReason(t *testing.T) {
	for text, reason := range map[string]string{
		``:                              "unexpected end",
		`[]`:                            "cannot unmarshal array",
		`null and more`:                 "invalid character",
		`{"version":3}`:                 "version 3",
		`{"created_at":-1,"version":2}`: "created_at -1",
		`{"anomaly_stats":{}}`:          "no created_at",
		`{"anomaly_stats":{"created_at":1,"anomaly":[{"key":"0"}]}}`:                                                                  `key "0"`,
		`{"anomaly_stats":{"created_at":1,"anomaly":[{"key":"0:-1"}]}}`:                                                               "program:rank",
		`{"anomaly_stats":{"created_at":1,"anomaly":[{"key":"0:1","data":[{"n_anomalies":-1}]}]}}`:                                    "-1 anomalies",
		`{"anomaly_stats":{"created_at":1,"anomaly":[{"key":"0:1","data":[{"n_anomalies":1,"min_timestamp":9,"max_timestamp":8}]}]}}`: "from 9 to 8",
		`{"anomaly_stats":{"created_at":1,"func":[{"app":-4}]}}`:                                                                      "func[0]",
		`{"anomaly_metrics":[{"app":0,"rank":0}]}`:                                                                                    "all_data",
		`{"anomaly_metrics":[{"app":0,"rank":0,"all_data":{"min_timestamp":-7}}]}`:                                                    "anomaly_metrics[0]",
		`{"counter_stats":[{"app":99999999999,"counter":"x"}]}`:                                                                       "counter_stats[0]",
	} {
		if p, err := legacy.ReadPacket([]byte(text)); err == nil || !strings.Contains(err.Error(), reason) || p != nil {
			t.Errorf("%s: %+v, %v; want a reason with %q", text, p, err, reason)
		}
	}
}

// FuzzReadPacket reads any text. What is read makes sense: no number of ranks or programs
// is negative, and steps do not end before they begin.
func FuzzReadPacket(f *testing.F) {
	for schema := 1; schema <= 2; schema++ {
		b, _ := encode(packettest.SmallRun(), schema, 5)
		f.Add(b)
	}
	if b, err := os.ReadFile("testdata/sample-packet-v2.json"); err == nil {
		f.Add(b)
	}
	f.Add([]byte(`{"anomaly_stats":{"created_at":1,"anomaly":[{"key":"0:2147483648"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := legacy.ReadPacket(b)
		if err != nil {
			return
		}
		if p.Created < 0 || p.Version != 1 && p.Version != 2 {
			t.Fatalf("%s: %+v", b, p)
		}
		for _, r := range p.Anomalies.Ranks {
			if int32(r.RankKey.Program) < 0 || r.RankKey.Rank < 0 {
				t.Fatalf("%s: %+v", b, r)
			}
			for _, s := range r.Steps {
				if s.Anomalies < 0 || s.First < 0 || s.Last < s.First {
					t.Fatalf("%s: %+v", b, s)
				}
			}
		}
		for _, m := range p.Metrics {
			if m.Program < 0 || m.Rank < 0 || m.All.First < 0 || m.All.Last < m.All.First {
				t.Fatalf("%s: %+v", b, m)
			}
		}
	})
}
