package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/schemas"
)

// InJSON says in one line what an error of package json found wrong with the content of a file, and on which line. What
// stands there is not quoted.
func InJSON(data []byte, err error) error {
	if line := schemas.ConflictLine(data); line > 0 {
		return fmt.Errorf("line %d: the conflict markers of a git merge; %s", line, schemas.ConflictHint)
	}
	if line, _ := placeOf(data, err); line > 0 {
		return fmt.Errorf("line %d: %w", line, plain(err))
	}
	return plain(err)
}

// plain says without Go's types what stands where it cannot.
func plain(err error) error {
	var mistyped *json.UnmarshalTypeError
	if !errors.As(err, &mistyped) {
		return err
	}
	if mistyped.Field == "" {
		return fmt.Errorf("the file holds one %s", mistyped.Value)
	}
	return fmt.Errorf("%s cannot be of the type %s", mistyped.Field, mistyped.Value)
}

// placeOf is where in data an error of package json is; zero where that is not known.
func placeOf(data []byte, err error) (line, column int) {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	var offset int64 // of the byte after
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &mistyped):
		offset = mistyped.Offset
	default:
		return 0, 0
	}
	before := data[:max(0, min(int(offset)-1, len(data)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}
