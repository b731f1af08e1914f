package schemas

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal that leaves <, > and & as they are, as files and what people read have them.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
