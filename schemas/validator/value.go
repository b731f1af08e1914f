package validator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Value decodes a text that is one JSON value, and bounds its numbers, for [Schema.Validate]. A number with an exponent
// becomes a float64; it is an error if it is out of range.
func Value(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return bounded(v)
}

// bounded replaces numbers by values of a bounded size: the library computes with all digits of a number, and 1e999999999
// has many. It refuses numbers that are out of the range of float64.
func bounded(v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		if !strings.ContainsAny(v.String(), "eE") {
			return v, nil
		}
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", v)
		}
		return f, nil
	case []any:
		for i := range v {
			if v[i], err = bounded(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			if v[name], err = bounded(v[name]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// Steps returns the steps of a path of tokens through the value v: names in objects and indices in lists.
func Steps(v any, path []string) []any {
	steps := make([]any, 0, len(path))
	for _, token := range path {
		var step any = token
		switch at := v.(type) {
		case map[string]any:
			v = at[token]
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i < len(at) {
				step, v = i, at[i]
			}
		}
		steps = append(steps, step)
	}
	return steps
}
