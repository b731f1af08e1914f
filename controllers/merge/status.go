package merge

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// joinStatuses joins statuses of one object.
func joinStatuses(kinds schemas.Kinds, base, a, b []byte) ([]byte, error) {
	var ref schemas.Ref
	var sides [3]reflect.Value
	for i, data := range [][]byte{a, b, base} {
		if data == nil {
			sides[i] = reflect.Zero(sides[0].Type())
			continue
		}
		var err error
		if ref, sides[i], err = readStatus(kinds, data); err != nil {
			return nil, err
		}
	}
	out := reflect.New(sides[0].Type())
	joinStruct(out.Elem(), sides[2], sides[0], sides[1])
	return state.EncodeStatus(ref, out.Interface().(schemas.Status))
}

// readStatus reads a status in its canonical form: of two that say the same, all values are the same.
func readStatus(kinds schemas.Kinds, data []byte) (schemas.Ref, reflect.Value, error) {
	ref, status, err := state.DecodeStatus(kinds, data)
	if err == nil {
		data, err = state.EncodeStatus(ref, status)
	}
	if err == nil {
		_, status, err = state.DecodeStatus(kinds, data)
	}
	if err != nil {
		return ref, reflect.Value{}, err
	}
	return ref, reflect.ValueOf(status).Elem(), nil
}

// joinStruct joins structs into out. Maps and lists are joined by their elements. The other fields are one unit if a
// time is among them; else each is a separate unit.
func joinStruct(out, base, a, b reflect.Value) {
	var together [][]int
	timed := false
	for _, index := range statusLeaves(out.Type()) {
		field := out.FieldByIndex(index)
		o, x, y := base.FieldByIndex(index), a.FieldByIndex(index), b.FieldByIndex(index)
		switch {
		case field.Kind() == reflect.Map:
			joinMap(field, o, x, y)
		case field.Type() == reflect.TypeFor[*schemas.NodeStatuses]():
			joined := map[string]schemas.NodeStatus(nil)
			joinMap(reflect.ValueOf(&joined).Elem(), nodesByName(o), nodesByName(x), nodesByName(y))
			field.Set(reflect.ValueOf(schemas.NodeStatusesOf(joined)))
		case listOf(field.Type()) != nil:
			joinList(field, o, x, y)
		default:
			together = append(together, index)
			timed = timed || field.Type() == timeType
		}
	}
	if timed {
		joinGroup(out, base, a, b, together)
		return
	}
	for _, index := range together {
		joinGroup(out, base, a, b, [][]int{index})
	}
}

// joinGroup takes the fields from one side.
func joinGroup(out, base, a, b reflect.Value, fields [][]int) {
	order := unit.compare
	if further := progress(a, b); further != 0 {
		order = func(unit, unit) int { return further } // of b over a
	}
	from := a
	if pickUnit(group(base, fields), group(a, fields), group(b, fields), order) {
		from = b
	}
	for _, index := range fields {
		out.FieldByIndex(index).Set(from.FieldByIndex(index))
	}
}

// group makes a unit of fields of a struct; of none but zero ones, one that is not there.
func group(v reflect.Value, fields [][]int) unit {
	values := make([]any, len(fields))
	zero := true
	var at time.Time
	for i, index := range fields {
		f := v.FieldByIndex(index)
		values[i], zero = f.Interface(), zero && f.IsZero()
		if t, ok := values[i].(schemas.Time); ok && !unitAhead(v.Type().FieldByIndex(index).Name) && t.After(at) {
			at = t.Time
		}
	}
	if zero {
		return unit{}
	}
	return unit{at, text(values)}
}

// progress compares b with a where they are the states of a question: the more advanced one counts, as in ledgers. It
// is 0 for others, and where neither is ahead.
func progress(a, b reflect.Value) int {
	x, ok := a.Addr().Interface().(*schemas.ClarificationRequestStatus)
	y, _ := b.Addr().Interface().(*schemas.ClarificationRequestStatus)
	if !ok {
		return 0
	}
	of := func(s *schemas.ClarificationRequestStatus) *schemas.Clarification {
		return &schemas.Clarification{Status: s.Phase, Round: s.Round, StaleAfter: s.StaleAfter, ResolvedAt: s.ResolvedAt}
	}
	return clarify.CompareProgress(of(y), of(x))
}

var timeType = reflect.TypeFor[schemas.Time]()

// statusLeaves are the fields of a struct, those of embedded structs in their place.
func statusLeaves(t reflect.Type) [][]int {
	var out [][]int
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous && f.IsExported() {
			out = append(out, f.Index)
		}
	}
	return out
}

// nodesByName is a map of the statuses of nodes.
func nodesByName(v reflect.Value) reflect.Value {
	byName := map[string]schemas.NodeStatus{}
	for name, n := range v.Interface().(*schemas.NodeStatuses).All() {
		byName[name] = *n
	}
	return reflect.ValueOf(byName)
}

// joinMap joins maps key by key; what a key has is a unit.
func joinMap(out, base, a, b reflect.Value) {
	joined := reflect.MakeMap(out.Type())
	for _, side := range []reflect.Value{a, b} {
		for _, key := range side.MapKeys() {
			o, x, y := base.MapIndex(key), a.MapIndex(key), b.MapIndex(key)
			taken := x
			if secondUnit(listElement(o), listElement(x), listElement(y)) {
				taken = y
			}
			if taken.IsValid() && !taken.IsZero() {
				joined.SetMapIndex(key, taken)
			}
		}
	}
	if joined.Len() > 0 {
		out.Set(joined)
	}
}

// listElement makes a unit of an element of a map or list; an invalid value or a zero one is not there.
func listElement(v reflect.Value) unit {
	if !v.IsValid() || v.IsZero() {
		return unit{}
	}
	if v.Kind() != reflect.Struct {
		return unit{text: text(v.Interface())}
	}
	return unit{group(v, statusLeaves(v.Type())).at, text(v.Interface())}
}

// list says how lists of some type are joined.
type list struct {
	// key tells what the elements of both sides are the same thing.
	key func(v any) string
	// compare is the order of the joined list.
	compare func(a, b any) int
	// grows means that elements are never removed from such a list, except those older than the last limit elements.
	grows bool
	limit int
}

// listOf returns how a list is joined; nil for a list that is one unit.
func listOf(t reflect.Type) *list {
	switch t {
	case reflect.TypeFor[[]string]():
		return &list{key: func(v any) string { return v.(string) }, compare: joinBy(strings.Compare)}
	case reflect.TypeFor[[]schemas.Condition]():
		return &list{key: func(v any) string { return v.(schemas.Condition).Type }, compare: joinBy(compareConditions)}
	case reflect.TypeFor[[]schemas.HistoryEntry]():
		return &list{key: textKey, compare: joinBy(compareEntries), grows: true, limit: schemas.HistoryLimit}
	case reflect.TypeFor[[]schemas.AppliedAction]():
		return &list{key: func(v any) string { return v.(schemas.AppliedAction).Name }, compare: joinBy(compareActions), grows: true}
	case reflect.TypeFor[[]schemas.ThreadEntry]():
		return &list{key: turnKey, compare: joinBy(compareTurns), grows: true}
	case reflect.TypeFor[[]schemas.RefusedReply]():
		return &list{key: func(v any) string { return v.(schemas.RefusedReply).Name }, compare: joinBy(compareRefused)}
	case reflect.TypeFor[[]schemas.MirrorComment]():
		return &list{key: func(v any) string { return v.(schemas.MirrorComment).Key }, compare: joinBy(compareMirrored)}
	case reflect.TypeFor[[]schemas.MirrorHandled]():
		return &list{key: func(v any) string { return strconv.FormatInt(v.(schemas.MirrorHandled).Comment, 10) },
			compare: joinBy(compareHandled)}
	}
	return nil
}

func joinBy[T any](compare func(a, b T) int) func(a, b any) int {
	return func(a, b any) int { return compare(a.(T), b.(T)) }
}

func textKey(v any) string { return string(text(v)) }

// turnKey is what a turn says, without when: of one turn at two times the later stays.
func turnKey(v any) string {
	t := v.(schemas.ThreadEntry)
	t.Timestamp = schemas.Time{}
	return textKey(t)
}

func compareConditions(a, b schemas.Condition) int { return strings.Compare(a.Type, b.Type) }

func compareEntries(a, b schemas.HistoryEntry) int {
	return cmp.Or(a.At.Compare(b.At.Time), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
}

func compareActions(a, b schemas.AppliedAction) int {
	return cmp.Or(a.At.Compare(b.At.Time), strings.Compare(a.Name, b.Name))
}

func compareTurns(a, b schemas.ThreadEntry) int {
	return cmp.Or(clarify.CompareTurns(a.ClarificationTurn, b.ClarificationTurn), strings.Compare(a.Source, b.Source),
		strings.Compare(a.Digest, b.Digest))
}

// joinList joins lists by the keys of their elements.
func joinList(out, base, a, b reflect.Value) {
	how := listOf(out.Type())
	if how.grows {
		base = reflect.Zero(out.Type())
	}
	o, x, y := how.index(base), how.index(a), how.index(b)
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	var joined []any
	for key := range keys {
		taken := x[key]
		if secondUnit(listElement(o[key]), listElement(x[key]), listElement(y[key])) {
			taken = y[key]
		}
		if taken.IsValid() {
			joined = append(joined, taken.Interface())
		}
	}
	slices.SortFunc(joined, how.compare)
	if how.limit > 0 && len(joined) > how.limit {
		joined = joined[len(joined)-how.limit:]
	}
	for _, v := range joined {
		out.Set(reflect.Append(out, reflect.ValueOf(v)))
	}
}

// index finds elements by their keys. Of several with one key the greatest counts; zero ones say nothing.
func (l *list) index(v reflect.Value) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	for i := range v.Len() {
		e := v.Index(i)
		if e.IsZero() {
			continue
		}
		key := l.key(e.Interface())
		if was, ok := out[key]; !ok || listElement(e).compare(listElement(was)) > 0 {
			out[key] = e
		}
	}
	return out
}

// joinFields joins files whose structs are joined as those of statuses are.
func joinFields[T any](base, a, b []byte, read func([]byte) (*T, error), encode func(*T) ([]byte, error)) ([]byte, error) {
	var sides [3]T
	for i, data := range [][]byte{base, a, b} {
		if data == nil {
			continue
		}
		v, err := read(data)
		if err == nil {
			data, err = encode(v)
		}
		if err == nil {
			v, err = read(data) // in canonical form: of two that say the same, all values are the same
		}
		if err != nil {
			return nil, err
		}
		sides[i] = *v
	}
	var out T
	value := func(v *T) reflect.Value { return reflect.ValueOf(v).Elem() }
	joinStruct(value(&out), value(&sides[0]), value(&sides[1]), value(&sides[2]))
	return encode(&out)
}
