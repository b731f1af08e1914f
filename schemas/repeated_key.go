package schemas

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// RepeatedKey returns the place of the first key that an object in valid JSON has twice, such as a[0].n; "" for none. Of such an object
// each reader takes another value.
func RepeatedKey(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return repeatedBelow(d, "")
}

// repeatedBelow reads the next value, which is at a place.
func repeatedBelow(d *json.Decoder, at string) string {
	begin, err := d.Token()
	if _, nested := begin.(json.Delim); err != nil || !nested {
		return ""
	}
	keys := map[string]bool{}
	for i := 0; d.More(); i++ {
		below := at + "[" + strconv.Itoa(i) + "]"
		if begin == json.Delim('{') {
			name, err := d.Token()
			key, ok := name.(string)
			if err != nil || !ok {
				return ""
			}
			if below = key; at != "" {
				below = at + "." + key
			}
			if keys[key] {
				return below
			}
			keys[key] = true
		}
		if place := repeatedBelow(d, below); place != "" {
			return place
		}
	}
	_, _ = d.Token() // the end; of valid text it is there
	return ""
}
