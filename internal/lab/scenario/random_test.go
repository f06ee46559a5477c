package scenario

import (
	"bytes"
	"testing"
)

func TestRandomScenariosAreValid(t *testing.T) {
	kinds := make(map[TroubleKind]int)
	for seed := range uint64(400) {
		text := Random(seed)
		s, err := Parse(RandomName, text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if !bytes.Equal(text, Random(seed)) {
			t.Fatalf("seed %d gives different programs", seed)
		}
		if (len(s.Troubles) == 0) != (seed%5 == 0) {
			t.Errorf("seed %d: %d troubles", seed, len(s.Troubles))
		}
		for i := range s.Troubles {
			kinds[s.Troubles[i].Kind]++
		}
	}
	for _, kind := range []TroubleKind{
		SlowCall, SlowMode, SlowRank, SlowHost, SlowLink, OSNoise, MemoryPressure, IOStall, LevelShift, Drift, Burst,
	} {
		if kinds[kind] == 0 {
			t.Errorf("no program has %s", kind)
		}
	}
}

func TestRandomPlacesHaveOneSlowFunction(t *testing.T) {
	for seed := range uint64(200) {
		text := RandomPlace(seed)
		s, err := Parse(RandomPlaceName, text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if !bytes.Equal(text, RandomPlace(seed)) {
			t.Fatalf("seed %d gives different programs", seed)
		}
		if seed%5 == 0 {
			if len(s.Troubles) > 0 {
				t.Errorf("seed %d: %d troubles", seed, len(s.Troubles))
			}
			continue
		}
		if len(s.Troubles) != 1 || len(s.Troubles[0].Functions) != 1 || len(s.Troubles[0].Ranks)+len(s.Troubles[0].Hosts) != 1 {
			t.Errorf("seed %d: got %+v", seed, s.Troubles)
		}
	}
}
