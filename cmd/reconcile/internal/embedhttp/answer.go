package embedhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/vectors/embed"
)

// request is the body of a request.
type request struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

// answer is the used part of a response.
type answer struct {
	Data []struct {
		Index     int             `json:"index"`
		Embedding json.RawMessage `json:"embedding"`
	} `json:"data"`
}

const (
	longestNumber  = 32 // bytes of a number with its comma and space: -1.7976931348623157e+308
	aroundVector   = 256
	aroundAnswer   = 64 << 10
	longestMessage = 200 // bytes of an endpoint's error message
)

// longestAnswer returns the maximum size of a response in bytes.
func longestAnswer(texts, dimensions int) int64 {
	return int64(texts)*(int64(dimensions)*longestNumber+aroundVector) + aroundAnswer
}

// decode parses the vectors of a response, in the order of the texts, and scales them to length 1.
func decode(data []byte, texts, dimensions int) ([][]float32, error) {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("its answer is not what /embeddings gives: %w", err)
	}
	if len(a.Data) != texts {
		return nil, fmt.Errorf("it answers with %d vectors to %d texts", len(a.Data), texts)
	}
	out := make([][]float32, texts)
	for _, d := range a.Data {
		if d.Index < 0 || d.Index >= texts || out[d.Index] != nil {
			return nil, fmt.Errorf("it answers with no vector, or two, for one of %d texts", texts)
		}
		v, err := decodeVector(d.Embedding, dimensions)
		if err != nil {
			return nil, err
		}
		out[d.Index] = v
	}
	return out, nil
}

// decodeVector parses a list of numbers. It rejects null, which some endpoints send for NaN.
func decodeVector(data []byte, dimensions int) ([]float32, error) {
	data = bytes.TrimSpace(data)
	if len(data) < 2 || data[0] != '[' {
		return nil, fmt.Errorf("it answers with a vector that is no list of numbers")
	}
	inner := data[1 : len(data)-1]
	if n := bytes.Count(inner, []byte(",")) + 1; n != dimensions {
		return nil, fmt.Errorf("its vectors have %d dimensions, where index.dimensions says %d; write dimensions: %d, or name "+
			"another model", n, dimensions, n)
	}
	v := make([]float32, 0, dimensions)
	for number := range bytes.SplitSeq(inner, []byte(",")) {
		x, err := strconv.ParseFloat(string(bytes.TrimSpace(number)), 32)
		if err != nil {
			return nil, fmt.Errorf("it answers with a vector that has something in it that is no finite number")
		}
		v = append(v, float32(x))
	}
	return v, embed.Unit(v)
}

// message returns the endpoint's error message, cut, in one line, without secrets, prefixed with ": "; or "".
func (e *Embedder) message(data []byte) string {
	var said struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	var deep struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &said) != nil {
		return ""
	}
	text := said.Message
	if json.Unmarshal(said.Error, &deep) == nil && deep.Message != "" {
		text = deep.Message
	} else if flat := ""; json.Unmarshal(said.Error, &flat) == nil && flat != "" {
		text = flat
	}
	if e.Key != "" {
		text = strings.ReplaceAll(text, e.Key, "***")
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, secrets.Redact(text))
	if text = strings.TrimSpace(shorten.Bytes(text, longestMessage)); text == "" {
		return ""
	}
	return ": " + text
}

// judge returns the error for a response that is not OK.
func (e *Embedder) judge(resp *http.Response, data []byte) error {
	status, message := fmt.Sprintf("it answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)), e.message(data)
	switch code := resp.StatusCode; {
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return e.unavailable(&refusal{status, message})
	case code >= 300 && code < 400:
		where := "elsewhere"
		if to, err := resp.Location(); err == nil {
			where = "to " + to.Scheme + "://" + to.Host
		}
		return e.unavailable(fmt.Errorf("%s: it redirects %s, where nothing is sent; correct index.endpoint", status, where))
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return e.unavailable(fmt.Errorf("%s%s; look at the variable that index.apiKeyEnv names", status, message))
	case code == http.StatusNotFound:
		return e.unavailable(fmt.Errorf("%s%s; look at index.endpoint and index.model", status, message))
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return &passing{errors.New(status + message)}
	}
	return e.unavailable(errors.New(status + message))
}
