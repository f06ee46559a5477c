package provenance

import "strings"

// profilerStep is the name of the calls that PyTorch's profiler makes of training steps, without their numbers.
const profilerStep = "ProfilerStep"

// CallName returns the name of a call for people: a training step of PyTorch's profiler has its number, which is
// the step of the event ID, as in ProfilerStep#17.
func CallName(function, eventID string) string {
	if function != profilerStep {
		return function
	}
	if parts := strings.Split(eventID, ":"); len(parts) == 3 {
		return function + "#" + parts[1]
	}
	return function
}
