package state

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// A shape is a form of JSON text that always decodes into a Go type: the fields of structs in their order, as this
// program writes them, and values that fit. Most files under state/ match their shape, so that a scan of a whole tree
// need not decode them to know that they are valid. Text that does not match may still be valid: then it is decoded.
type shape struct {
	kind   shapeKind
	mark   mark
	fields []shapeField // of structs
	elem   *shape       // of lists and maps
}

type shapeKind uint8

const (
	shapeOther shapeKind = iota // no text surely matches
	shapeText
	shapeInt
	shapeBool
	shapeTime
	shapeAny
	shapeStruct
	shapeList
	shapeMap
)

type shapeField struct {
	start string // the name in quotes, and a colon
	shape *shape
}

// mark names a value that is extracted from a file without decoding it.
type mark uint8

const (
	markNone mark = iota
	markVersion
	markKind
	markName
	markKey
	markOutcome
	markAgent
	markAsks
	markLearned
	markOutputs
	markMarks
	markStatus
	markPhase
	markDigest
	markCondition // after the three that follow
	markConditionType
	markConditionStatus
	markConditionReason
	markDone
	markTotal
	markRunning
	markFinished
	markNodeState
	markID
	marks
)

// The values to extract from records and statuses, by paths.
var (
	envelopeMarks = map[string]mark{".apiVersion": markVersion, ".kind": markKind, ".metadata.name": markName}
	runMarks      = map[string]mark{".apiVersion": markVersion, ".kind": markKind, ".key": markKey, ".outcome": markOutcome,
		".agent": markAgent, ".asks": markAsks, ".planChange": markAsks, ".learned[]": markLearned, ".outputs[]": markOutputs,
		".turn.marks[]": markMarks}
	statusMarks = map[string]mark{"": markStatus, ".phase": markPhase, ".observedDigest": markDigest,
		".conditions[]": markCondition, ".conditions[].type": markConditionType, ".conditions[].status": markConditionStatus,
		".conditions[].reason": markConditionReason}
	dagMarks = map[string]mark{".progress.done": markDone, ".progress.total": markTotal, ".running": markRunning,
		".finishedAt": markFinished, ".nodes[].state": markNodeState}
	requestMarks = map[string]mark{".id": markID}
)

func runShape() *shape { return shapeOf(reflect.TypeFor[schemas.Run](), "", runMarks) }

// statusShape returns the shape of the status files of a kind.
func statusShape(k schemas.Kind) *shape {
	e := shapeOf(reflect.TypeFor[envelope](), "", envelopeMarks)
	t := reflect.TypeOf(k.NewStatus()).Elem()
	wanted := maps.Clone(statusMarks)
	switch t {
	case reflect.TypeFor[schemas.DAGStatus]():
		maps.Copy(wanted, dagMarks)
	case reflect.TypeFor[schemas.ClarificationRequestStatus]():
		maps.Copy(wanted, requestMarks)
	}
	e.fields[len(e.fields)-1].shape = shapeOf(t, "", wanted)
	return e
}

// shapeOf makes the shape of a type. wanted has marks by paths as .conditions[].type.
func shapeOf(t reflect.Type, path string, wanted map[string]mark) *shape {
	s := &shape{mark: wanted[path]}
	if t == reflect.TypeFor[schemas.Time]() {
		s.kind = shapeTime
		return s
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		s.kind = shapeAny
		return s
	}
	if t == reflect.TypeFor[schemas.NodeStatuses]() {
		s.kind, s.elem = shapeMap, shapeOf(reflect.TypeFor[schemas.NodeStatus](), path+"[]", wanted)
		return s
	}
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem(), path, wanted)
	case reflect.String:
		s.kind = shapeText
	case reflect.Int:
		s.kind = shapeInt
	case reflect.Bool:
		s.kind = shapeBool
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			s.kind, s.elem = shapeList, shapeOf(t.Elem(), path+"[]", wanted)
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			s.kind, s.elem = shapeMap, shapeOf(t.Elem(), path+"[]", wanted)
		}
	case reflect.Struct:
		s.kind = shapeStruct
		s.addFields(t, path, wanted)
	}
	return s
}

func (s *shape) addFields(t reflect.Type, path string, wanted map[string]mark) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			s.addFields(f.Type, path, wanted)
		case name == "" || name == "-" || strings.Contains(options, "string"):
			// Text with this field does not match.
		default:
			s.fields = append(s.fields, shapeField{`"` + name + `":`, shapeOf(f.Type, path+"."+name, wanted)})
		}
	}
}

// shaped is text that matches a shape.
type shaped struct {
	packed []byte // the text without whitespace; valid until the next read
	marked [marks]span
	ready  span // status and reason of the Ready condition
	stall  [2]span
	has    struct{ ready, stalled, blocked bool }
}

// span is a part of packed. A missing value has the offset 0, where no value begins.
type span struct{ from, to int32 }

func (s span) present() bool { return s.from > 0 }

// of returns a string without its quotes.
func (s *shaped) of(at span) []byte {
	if !at.present() {
		return nil
	}
	return s.packed[at.from+1 : at.to-1]
}

// daysOf are the minimum numbers of days of the months.
var daysOf = [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// envelope is the outer form of every file under state/ that concerns one object.
type envelope struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   envelopeName `json:"metadata"`
	Status     any          `json:"status"`
}

type envelopeName struct {
	Name string `json:"name"`
}

// The data of a file that matches its shape, so that it is decoded only on access.
