package schemas

// Nesting that encoding/json refuses, and text that is too short to nest deep enough to exhaust a goroutine's stack.
const (
	deepest = 10_000
	shallow = 1 << 19 // bytes; a million levels of a decoder still fit into the stack
)

// TooDeep reports whether the brackets in JSON data are nested too deep for a decoder without a bound of its own. Such a
// decoder must not see it: it would exhaust the stack, which ends the process. The text may be no JSON at all.
func TooDeep(data []byte) bool {
	if len(data) < shallow {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth > deepest {
				return true
			}
		case c == ']', c == '}':
			depth--
		}
	}
	return false
}

// Depth returns the depth to which the brackets in JSON data are nested at most. Brackets in texts count, too.
func Depth(data []byte) (most int) {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		most = max(most, depth)
	}
	return most
}
