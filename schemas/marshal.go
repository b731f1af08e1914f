package schemas

import (
	"bytes"
	"encoding/json"
)

// Marshal encodes v as JSON, like json.Marshal, but does not escape HTML: <, > and & stay as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
