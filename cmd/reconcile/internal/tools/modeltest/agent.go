package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Main is the program of an agent for tests: it sends requests to the service that ANTHROPIC_BASE_URL names until one fails, as
// many as its argument says, with a second one streamed, and prints JSON lines that end with {"type":"done"} or {"type":"failed"}. It tells its key and its whole
// environment, which no record may show. It returns the exit code.
func Main(args []string, getenv func(string) string, environ []string, out io.Writer) int {
	say := func(v object) { json.NewEncoder(out).Encode(v) } //nolint:errcheck // nobody may listen any more
	say(object{"type": "env", "environ": environ})
	n := 1
	if len(args) > 0 {
		n, _ = strconv.Atoi(args[0])
	}
	body := `{"model":"claude-sonnet-4-5"}`
	if len(args) > 1 {
		body = `{"model":"claude-sonnet-4-5","stream":true}`
	}
	var text string
	for range n {
		r, err := http.NewRequest(http.MethodPost, getenv("ANTHROPIC_BASE_URL")+"/v1/messages", strings.NewReader(body))
		if err != nil {
			say(object{"type": "failed", "message": err.Error()})
			return 1
		}
		r.Header.Set("X-Api-Key", getenv("ANTHROPIC_API_KEY"))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			say(object{"type": "failed", "message": err.Error()})
			return 1
		}
		first := make([]byte, 1)
		got, _ := io.ReadFull(resp.Body, first)
		say(object{"type": "answered", "status": resp.StatusCode})
		data, _ := io.ReadAll(io.MultiReader(strings.NewReader(string(first[:got])), resp.Body))
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			say(object{"type": "failed", "message": string(data)})
			return 1
		}
		var a struct {
			Content []struct{ Text string }
		}
		if json.Unmarshal(data, &a) == nil && len(a.Content) > 0 {
			text = a.Content[0].Text
		}
	}
	say(object{"type": "done", "text": text})
	fmt.Fprintln(os.Stderr, "the end")
	return 0
}
