package quickjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"unsafe"
)

// plans remembers what was found out about types: a plan, or nil for a type that is not handled.
var plans sync.Map // reflect.Type -> plan

func planOf(t reflect.Type) plan {
	if p, ok := plans.Load(t); ok {
		return p.(plan)
	}
	// Two goroutines may make the same plan; neither sees the other's half of one.
	return planner{}.of(t)
}

// planner makes plans; it holds the types that are being planned: one that holds itself is not handled.
type planner map[reflect.Type]bool

func (b planner) of(t reflect.Type) plan {
	if p, ok := plans.Load(t); ok {
		return p.(plan)
	}
	if b[t] {
		return nil
	}
	b[t] = true
	p := b.make(t)
	delete(b, t)
	plans.Store(t, p)
	return p
}

func (b planner) make(t reflect.Type) plan {
	ptr := reflect.PointerTo(t)
	switch {
	case t.Kind() != reflect.Pointer && ptr.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return planOwn(t)
	case ptr.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		return decodeString
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return planInt(t)
	case reflect.Float64:
		return decodeFloat
	case reflect.Pointer:
		return b.pointer(t)
	case reflect.Slice:
		return b.slice(t)
	case reflect.Map:
		return b.table(t)
	case reflect.Struct:
		return b.structure(t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return planAny
		}
	}
	return nil
}

// member is a field of a struct, or of one that is embedded in it.
type member struct {
	name   string
	offset uintptr
	decode plan
}

func (b planner) structure(t reflect.Type) plan {
	members, ok := b.members(t, 0, nil)
	if !ok || len(members) > 64 {
		return nil
	}
	byName := make(map[string]int, len(members))
	for i, m := range members {
		if _, twice := byName[m.name]; twice {
			return nil
		}
		byName[m.name] = i
	}
	return func(r *reader, p unsafe.Pointer) { decodeStruct(r, p, members, byName) }
}

// members collects fields under the names that encoding/json knows them by.
func (b planner) members(t reflect.Type, base uintptr, to []member) (_ []member, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		embedded := f.Anonymous && name == ""
		switch {
		case tag == "-", !f.IsExported() && !embedded:
			continue
		case strings.Contains(options, "string"):
			return nil, false
		case embedded:
			if f.Type.Kind() != reflect.Struct || !f.IsExported() {
				return nil, false
			}
			if to, ok = b.members(f.Type, base+f.Offset, to); !ok {
				return nil, false
			}
			continue
		case name == "":
			name = f.Name
		}
		decode := b.of(f.Type)
		if decode == nil {
			return nil, false
		}
		to = append(to, member{name, base + f.Offset, decode})
	}
	return to, true
}

func decodeStruct(r *reader, p unsafe.Pointer, members []member, byName map[string]int) {
	if r.null() || !r.open('{') {
		return
	}
	var seen uint64
	for more := r.first('}'); more; more = r.next('}') {
		key := r.keyBytes()
		at, known := byName[string(key)]
		switch {
		case known && seen&(1<<at) == 0:
			seen |= 1 << at
			members[at].decode(r, unsafe.Add(p, members[at].offset))
		case known, !unknown(string(key), members):
			r.fail() // encoding/json merges, and ignores case
		default:
			r.raw()
		}
	}
}

func unknown(key string, members []member) bool {
	for i := range members {
		if strings.EqualFold(key, members[i].name) {
			return false
		}
	}
	return true
}
