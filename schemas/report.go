package schemas

// Report collects problems of one spec while Check runs; field paths are below spec.
type Report struct {
	problems []Problem
	fields   [][]any
}

// CheckName tells what is wrong with the name of an object, or nil: ^[a-z0-9][a-z0-9._-]{0,62}$, and not a name that
// some file system reserves (con, nul, …, a trailing dot).
func CheckName(name string) error { return nil }

// Nearest returns the word of the list that s was probably meant to be, or "".
func Nearest(s string, words []string) string { return "" }
