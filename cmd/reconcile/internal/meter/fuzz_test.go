package meter

import (
	"net/http"
	"testing"
)

// FuzzAnswers reads anything as an answer in any format: numbers stay plausible, whatever arrives, and do not depend on how it
// arrives.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"usage":{"input_tokens":5,"output_tokens":-3,"cache_read_input_tokens":9e9}}`,
		"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\r\n\r\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n",
		"data: {\"response\":{\"usage\":{\"input_tokens\":4,\n\ndata: [DONE]\n\n", `[{"usageMetadata":{"promptTokenCount":9223372036854775807}}]`,
		`{"error":{"code":"x","details":[{"retryDelay":"3s"}]}}`, `{"error":"text"}`, `{"type":"error","message":"m","code":7}`, "data:\n\n", "\xff\x00",
	} {
		for w := range byte(5) {
			f.Add(w, false, []byte(seed), byte(3))
			f.Add(w, true, []byte(seed), byte(7))
		}
	}
	f.Fuzz(func(t *testing.T, w byte, stream bool, data []byte, size byte) {
		read := func(size int) *exchange {
			h := http.Header{}
			if stream {
				h.Set("Content-Type", "text/event-stream")
			}
			x := &exchange{wire: wire(w % 5)}
			x.begin(&http.Response{StatusCode: 200, Header: h})
			for at := 0; at < len(data); at += size {
				x.Write(data[at:min(at+size, len(data))])
			}
			x.end(h, true)
			return x
		}
		x, y := read(int(size)+1), read(len(data)+1)
		if x.tokens != y.tokens || x.model != y.model {
			t.Errorf("in pieces %+v, in one %+v", x.tokens, y.tokens)
		}
		if x.input < 0 || x.output < 0 || x.cached < 0 || x.written < 0 || x.cached+x.written > x.input || x.input > most || x.output > most {
			t.Errorf("%+v", x.tokens)
		}
	})
}
