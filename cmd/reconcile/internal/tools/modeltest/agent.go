package modeltest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp/acptest"
)

// Main is the program of an agent for tests: it sends requests to the service that ANTHROPIC_BASE_URL names until one fails, as
// many as its argument says, with a second one streamed, and prints JSON lines that end with {"type":"done"} or {"type":"failed"}. It tells its key and its whole
// environment, which no record may show. It returns the exit code. Options come before the arguments:
//
//	-kill=WHO:N   kill self or parent at the N-th line, of those that are printed and those of streamed answers
//	-once=FILE    only if the file does not exist; it does afterwards
//	-alone=FILE   append a line to FILE.two if another agent with this option lives
//	-work=A,B     append a line to both files at each of these lines, before it counts
//	-session=ID   print {"type":"session","id":ID} first
func Main(args []string, getenv func(string) string, environ []string, out io.Writer) int {
	a := &agent{out: out, url: getenv("ANTHROPIC_BASE_URL"), key: getenv("ANTHROPIC_API_KEY")}
	args = a.configure(args)
	a.say(object{"type": "env", "environ": environ})
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
		data, failed := a.ask(body)
		if failed != "" {
			a.say(object{"type": "failed", "message": failed})
			return 1
		}
		var answer struct {
			Content []struct{ Text string }
		}
		if json.Unmarshal(data, &answer) == nil && len(answer.Content) > 0 {
			text = answer.Content[0].Text
		}
	}
	a.say(object{"type": "done", "text": text})
	fmt.Fprintln(os.Stderr, "the end")
	return 0
}

// agent is the state of Main.
type agent struct {
	out      io.Writer
	url, key string
	blow     acptest.Blow
	work     []string
}

// configure takes the options from the arguments, and returns the rest.
func (a *agent) configure(args []string) []string {
	for i, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "-kill":
			a.blow.Kill = value
		case "-once":
			a.blow.Once = value
		case "-alone":
			acptest.Alone(value)
		case "-work":
			a.work = strings.Split(value, ",")
		case "-session":
			a.say(object{"type": "session", "id": value})
		default:
			return args[i:]
		}
	}
	return nil
}

// say prints a line.
func (a *agent) say(v object) {
	a.count()
	json.NewEncoder(a.out).Encode(v) //nolint:errcheck // nobody may listen any more
}

// count does a piece of work, and counts a line.
func (a *agent) count() {
	for _, name := range a.work {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = fmt.Fprintln(f, os.Getpid())
		}
		if err != nil {
			panic(err)
		}
		f.Close()
	}
	a.blow.Strike()
}

// ask sends a request, and returns the answer or a failure.
func (a *agent) ask(body string) (data []byte, failed string) {
	r, err := http.NewRequest(http.MethodPost, a.url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return nil, err.Error()
	}
	r.Header.Set("X-Api-Key", a.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err.Error()
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	_, _ = in.Peek(1)
	a.say(object{"type": "answered", "status": resp.StatusCode})
	for err == nil {
		var line []byte
		line, err = in.ReadBytes('\n')
		if data = append(data, line...); len(bytes.TrimSpace(line)) > 0 {
			a.count()
		}
	}
	if resp.StatusCode != http.StatusOK {
		return nil, string(data)
	}
	return data, ""
}
