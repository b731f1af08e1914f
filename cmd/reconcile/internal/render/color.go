package render

// Color is one of the few colours that output uses; the zero Color is the terminal's own.
type Color string

// The colours, as SGR parameters.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Dim    Color = "2"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Blue   Color = "34"
)

// Palette is what the output can do. The zero Palette is for files and pipes.
type Palette struct {
	On    bool // there are colours
	Width int  // columns of the terminal, to which lines are cut or wrapped; 0: no terminal, no limit
}

// Paint wraps s, which must be clean, in the escape codes of a colour, unless the palette is off or the colour plain.
func (p Palette) Paint(c Color, s string) string {
	if !p.On || c == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// stateColor returns the Color of a state's word, such as green for Succeeded or red for Failed: a phase, a node state
// or a condition's status.
func stateColor(word string) Color {
	switch word {
	case "Succeeded", "Active", "Completed", "True", "Applied", "Ready", "resolved", "answered", "ok", "done", "Passed":
		return Green
	case "Failed", "False", "Invalid", "Stalled", "error", "abandoned", "refused", "stuck":
		return Red
	case "Running", "Queued", "Reconciling", "working", "clarifying":
		return Blue
	case "Blocked", "Paused", "Suspended", "Unknown", "Cancelled", "warning", "escalated", "pending", "stale",
		"blocked-clarification":
		return Yellow
	case "Skipped", "Pending", "Created", "idle":
		return Dim
	}
	return Plain
}

// Word returns a cell with a word in the color of its state, or a dash for "".
func Word(s string) Cell {
	if s == "" {
		return Cell{Text: none}
	}
	return Cell{Text: s, Color: stateColor(s)}
}
