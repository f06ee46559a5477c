package tracefile

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/chimbuko/chimbuko/internal/record/provenance"
)

// Numbers of fields in Perfetto's schema, by message.
const (
	tracePacket protowire.Number = 1

	packetTimestamp  protowire.Number = 8 // nanoseconds
	packetSequence   protowire.Number = 10
	packetEvent      protowire.Number = 11
	packetFlags      protowire.Number = 13
	packetDescriptor protowire.Number = 60

	descriptorUUID    protowire.Number = 1
	descriptorName    protowire.Number = 2
	descriptorProcess protowire.Number = 3
	descriptorThread  protowire.Number = 4
	descriptorParent  protowire.Number = 5
	descriptorCounter protowire.Number = 8

	processPID  protowire.Number = 1
	processName protowire.Number = 6

	threadPID      protowire.Number = 1
	threadTID      protowire.Number = 2
	threadNameText protowire.Number = 5

	eventAnnotation protowire.Number = 4
	eventType       protowire.Number = 9
	eventTrack      protowire.Number = 11
	eventCategory   protowire.Number = 22
	eventName       protowire.Number = 23
	eventCount      protowire.Number = 30
	eventCountFloat protowire.Number = 44
	eventFlow       protowire.Number = 47

	annotationBool   protowire.Number = 2
	annotationUint   protowire.Number = 3
	annotationInt    protowire.Number = 4
	annotationFloat  protowire.Number = 5
	annotationString protowire.Number = 6
	annotationName   protowire.Number = 10
)

// sequence is the number of the only sequence of packets; cleared means that its first packet
// does not depend on earlier ones.
const (
	sequence = 1
	cleared  = 1
)

// perfettoTypes are the numbers of event types.
var perfettoTypes = [...]uint64{begin: 1, end: 2, instant: 3, count: 4}

// appendPerfetto appends the trace to b. Packets refer to others only by the numbers of
// tracks and flows.
func appendPerfetto(b []byte, m *model) []byte {
	for i, t := range m.tracks {
		packet := appendUint(nil, packetSequence, sequence)
		if i == 0 {
			packet = appendUint(packet, packetFlags, cleared)
		}
		packet = appendBytes(packet, packetDescriptor, descriptor(t))
		b = appendBytes(b, tracePacket, packet)
	}
	for i := range m.events {
		packet := appendUint(nil, packetTimestamp, uint64(m.events[i].time)*uint64(m.unit.Nanos()))
		packet = appendUint(packet, packetSequence, sequence)
		packet = appendBytes(packet, packetEvent, trackEvent(&m.events[i]))
		b = appendBytes(b, tracePacket, packet)
	}
	return b
}

func descriptor(t *track) []byte {
	b := appendUint(nil, descriptorUUID, t.id)
	if t.parent != nil {
		b = appendUint(b, descriptorParent, t.parent.id)
	}
	switch t.kind {
	case processTrack:
		p := appendUint(nil, processPID, t.pid)
		return appendBytes(b, descriptorProcess, appendText(p, processName, t.name))
	case threadTrack:
		p := appendUint(nil, threadPID, t.pid)
		p = appendUint(p, threadTID, t.tid)
		return appendBytes(b, descriptorThread, appendText(p, threadNameText, t.name))
	case counterTrack:
		b = appendBytes(b, descriptorCounter, nil)
	}
	return appendText(b, descriptorName, t.name)
}

func trackEvent(e *event) []byte {
	b := appendUint(nil, eventType, perfettoTypes[e.kind])
	b = appendUint(b, eventTrack, e.track.id)
	switch e.kind {
	case begin, instant:
		b = appendText(b, eventName, e.name)
	case count:
		if e.value <= math.MaxInt64 {
			b = appendUint(b, eventCount, e.value)
		} else {
			b = appendFloat(b, eventCountFloat, float64(e.value))
		}
	}
	for _, c := range e.categories {
		b = appendText(b, eventCategory, c)
	}
	for _, f := range e.flows {
		b = protowire.AppendTag(b, eventFlow, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, f.id)
	}
	for _, a := range e.args {
		b = appendBytes(b, eventAnnotation, annotation(a))
	}
	return b
}

func annotation(a arg) []byte {
	b := appendText(nil, annotationName, a.name)
	switch v := a.value.(type) {
	case bool:
		return appendUint(b, annotationBool, protowire.EncodeBool(v))
	case uint64:
		return appendUint(b, annotationUint, v)
	case int64:
		return appendUint(b, annotationInt, uint64(v))
	case float64:
		return appendFloat(b, annotationFloat, v)
	default:
		return appendText(b, annotationString, v.(string))
	}
}

func appendUint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFloat(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

// appendText appends a string as UTF-8.
func appendText(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), provenance.Text(s))
}
