// Package acptest is an agent for tests: it speaks the Agent Client Protocol over its standard streams, and plays a script,
// with the faults of real agents.
//
// Its arguments are options, which begin with a dash, and then the steps of a turn:
//
//	-calls=FILE     append the method of each message that arrives to a file
//	-servers=FILE   write the MCP servers that a session is opened with to a file, as JSON
//	-session=ID     the session's id; default s1
//	-resume, -load  offer session/resume, session/load
//	-forget         offer them, and know no session
//	-modes=A,B      offer modes; the first one is set
//	-early=TEXT     send a message before the answer to session/new
//	-refuse=METHOD  answer a method with the error -32000
//	-die=METHOD     exit with code 7 when a method arrives
//	-mute=METHOD    do not answer a method
//	-stay           do not end when the input is closed
//	-kill=WHO:N     kill self or parent at the N-th message, of those that arrive and those that are sent
//	-once=FILE      only if the file does not exist; it does afterwards
//	-prompts=FILE   append each prompt to a file
//	-turns=FILE     count the turns in a file, also those of other processes; a step N>STEP is played in turn N only
//	-steer          take texts while a turn runs: _session/steering
//	-alone=FILE     append a line to FILE.two if another agent with this option lives
//
//	text:TEXT       a part of a message, without an id
//	part:ID:TEXT    a part of the message with that id
//	thought:TEXT    a thought
//	foreign:TEXT    a message in another session
//	tool:ID:STATUS  a tool call, or a change of one
//	usage:USED:SIZE[:COST] the use of the context, and what the session cost so far
//	burst:N         N updates of one tool call, at once
//	line:N          an update with N bytes of content
//	unknown:KIND    an update of an unknown kind with a text
//	noise:TEXT      a line that is no message
//	stderr:TEXT     a line of standard error
//	ask:ID:COMMAND  a request for permission; its outcome becomes a part of the message
//	shell:ID:TEXT   the same for a text for a shell, with a reason
//	edit:ID:PATH    the same for a change of a file
//	call:METHOD     another request; the code of its error becomes a part of the message
//	warn:TITLE      a typed failure of severity warning
//	fail:CATEGORY   the answer will have a typed failure of severity error
//	write:PATH:TEXT a file
//	pid:PATH        a file with the process's number
//	fork            a process in the background that stays
//	gate:PATH       wait for a line in a named pipe
//	exit:CODE       exit
//	steered         wait for such a text, which becomes a part of the message
//	hang            wait for the turn to be cancelled
//	deaf            wait for ever
//	error:CODE:MESSAGE:DATA  answer with an error; DATA is JSON or empty
//	end:REASON:TOKENS        answer with a stop reason and output tokens; without TOKENS without usage
//	late:TEXT       after the answer: a part of the message
//	again           answer a second time
//
// A turn whose steps do not answer ends with "end_turn" and 5 output tokens.
package acptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

type object = map[string]any

// Main plays an agent until its input ends, and returns its exit code.
func Main(args []string, in io.Reader, out io.Writer) int {
	a := &agent{out: out, session: "s1", cancelled: make(chan struct{}, 1), played: make(chan struct{}),
		answers: map[string]chan json.RawMessage{}, exit: make(chan int, 1), texts: make(chan string, 8)}
	a.configure(args)
	go a.serve(in)
	return <-a.exit
}

type agent struct {
	session, calls, early, refuse, die, mute string
	prompts, turns, servers                  string
	blow                                     Blow
	steer                                    bool
	texts                                    chan string // that steer the turn
	playing                                  atomic.Bool
	modes                                    []string
	resume, load, forget, stay               bool
	steps                                    []string

	cancelled chan struct{}
	played    chan struct{} // closed after the last step
	exit      chan int
	meta      any // of the answer

	mu       sync.Mutex // guards the fields below
	out      io.Writer
	answers  map[string]chan json.RawMessage
	asked    int
	answered bool
}

func (a *agent) configure(args []string) {
	for i, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "-calls":
			a.calls = value
		case "-servers":
			a.servers = value
		case "-session":
			a.session = value
		case "-resume":
			a.resume = true
		case "-load":
			a.load = true
		case "-forget":
			a.resume, a.forget = true, true
		case "-modes":
			a.modes = strings.Split(value, ",")
		case "-early":
			a.early = value
		case "-refuse":
			a.refuse = value
		case "-die":
			a.die = value
		case "-mute":
			a.mute = value
		case "-stay":
			a.stay = true
		case "-kill":
			a.blow.Kill = value
		case "-once":
			a.blow.Once = value
		case "-prompts":
			a.prompts = value
		case "-turns":
			a.turns = value
		case "-steer":
			a.steer = true
		case "-alone":
			Alone(value)
		default:
			a.steps = args[i:]
			return
		}
	}
}

type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Session string `json:"sessionId"`
		Mode    string `json:"modeId"`
		Prompt  []struct{ Text string }
		Servers json.RawMessage `json:"mcpServers"`
	}
	Result json.RawMessage
	Error  *struct{ Code int }
}

// serve reads messages until the end of the input.
func (a *agent) serve(in io.Reader) {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			panic("the client sent " + string(line))
		}
		a.blow.Strike()
		a.note(m.Method)
		switch m.Method {
		case "":
			a.take(&m)
			continue
		case a.die:
			a.exit <- 7
			return
		case a.mute:
			continue
		case a.refuse:
			a.send(object{"id": m.ID, "error": object{"code": -32000, "message": "Authentication required"}})
			continue
		}
		a.handle(&m)
	}
	a.mu.Lock()
	answered := a.answered
	a.mu.Unlock()
	if answered {
		<-a.played // what follows the answer
	}
	if !a.stay {
		a.exit <- 0
	}
}

// note appends the method that a client called to the file in which a test finds the calls.
func (a *agent) note(method string) {
	if a.calls == "" || method == "" {
		return
	}
	f, err := os.OpenFile(a.calls, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, method)
}

func (a *agent) handle(m *message) {
	switch m.Method {
	case "initialize":
		session := object{}
		if a.resume {
			session["resume"] = object{}
		}
		answer := object{"protocolVersion": 1, "agentInfo": object{"name": "acptest", "version": "1"},
			"agentCapabilities": object{"loadSession": a.load, "sessionCapabilities": session}}
		if a.steer {
			answer["_meta"] = object{"steering": object{"supported": true}}
		}
		a.reply(m, answer)
	case "_session/steering":
		if !a.playing.Load() {
			a.reply(m, object{"outcome": "promptRequired", "reason": "noRunningTurn"})
			return
		}
		a.texts <- m.Params.Prompt[0].Text
		a.reply(m, object{"outcome": "injected"})
	case "session/new":
		if a.early != "" {
			a.update(object{"sessionUpdate": "usage_update", "used": 1, "size": 100})
			a.chunk("agent_message_chunk", "", a.early)
		}
		a.reply(m, a.opened(m, object{"sessionId": a.session}))
	case "session/load", "session/resume":
		if a.forget || m.Params.Session != a.session {
			a.send(object{"id": m.ID, "error": object{"code": -32002, "message": "no such session"}})
			return
		}
		if m.Method == "session/load" {
			a.chunk("agent_message_chunk", "", "replayed")
		}
		a.reply(m, a.opened(m, object{}))
	case "session/set_mode":
		a.reply(m, object{})
		a.update(object{"sessionUpdate": "current_mode_update", "currentModeId": m.Params.Mode})
	case "session/prompt":
		a.playing.Store(true)
		if a.prompts != "" {
			appendTo(a.prompts, m.Params.Prompt[0].Text+"\n")
		}
		go a.play(m)
	case "session/cancel":
		select {
		case a.cancelled <- struct{}{}:
		default:
		}
	}
}

// opened adds the modes of the test agent to its answer to a message that opens a session.
func (a *agent) opened(m *message, answer object) object {
	if a.servers != "" {
		appendTo(a.servers, string(m.Params.Servers)+"\n")
	}
	if len(a.modes) > 0 {
		var list []object
		for _, m := range a.modes {
			list = append(list, object{"id": m, "name": m})
		}
		answer["modes"] = object{"currentModeId": a.modes[0], "availableModes": list}
	}
	return answer
}

// play plays the steps of a turn.
func (a *agent) play(m *message) {
	turn := a.turn()
	for _, step := range a.steps {
		if n, of, numbered := strings.Cut(step, ">"); numbered {
			if n != turn {
				continue
			}
			step = of
		}
		name, rest, _ := strings.Cut(step, ":")
		if !a.content(name, rest) {
			a.act(m, name, rest)
		}
	}
	if !a.answered {
		a.end(m, "end_turn", "5")
	}
	close(a.played)
}

// turn counts this turn, and returns its number.
func (a *agent) turn() string {
	if a.turns == "" {
		return "1"
	}
	appendTo(a.turns, "turn\n")
	data, err := os.ReadFile(a.turns)
	must(err)
	return strconv.Itoa(strings.Count(string(data), "\n"))
}

func appendTo(file, text string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(err)
	_, err = f.WriteString(text)
	must(err)
	must(f.Close())
}

// content plays a step that only sends something.
func (a *agent) content(name, rest string) bool {
	first, second, _ := strings.Cut(rest, ":")
	n, _ := strconv.Atoi(first)
	switch name {
	case "text":
		a.chunk("agent_message_chunk", "", rest)
	case "late":
		a.chunk("agent_message_chunk", "", rest)
	case "part":
		a.chunk("agent_message_chunk", first, second)
	case "thought":
		a.chunk("agent_thought_chunk", "", rest)
	case "unknown":
		a.chunk(rest, "", "a text of an unknown kind")
	case "foreign":
		a.send(object{"method": "session/update", "params": object{"sessionId": "another",
			"update": object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": rest}}}})
	case "tool":
		a.update(object{"sessionUpdate": "tool_call", "toolCallId": first, "title": "tool " + first, "status": second})
	case "usage":
		window, amount, _ := strings.Cut(second, ":")
		size, _ := strconv.Atoi(window)
		u := object{"sessionUpdate": "usage_update", "used": n, "size": size}
		if cost, err := strconv.ParseFloat(amount, 64); err == nil {
			u["cost"] = object{"amount": cost, "currency": "USD"}
		}
		a.update(u)
	case "burst":
		for i := range n {
			a.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "in_progress", "title": strconv.Itoa(i)})
		}
		a.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "completed"})
	case "line":
		a.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "l", "status": "completed",
			"content": strings.Repeat("x", n)})
	case "noise":
		a.write([]byte(rest + "\n"))
	case "stderr":
		fmt.Fprintln(os.Stderr, rest)
	case "warn":
		a.update(object{"sessionUpdate": "session_info_update", "_meta": sessionFailure("warning", "limit", rest)})
	default:
		return false
	}
	return true
}

func sessionFailure(severity, category, title string) object {
	return object{"jetbrains": object{"air": object{"version": 1, "sessionFailure": object{
		"severity": severity, "category": category, "title": title, "actions": []string{"retry"}, "id": "f1", "revision": 1}}}}
}

// act plays a step with an effect.
func (a *agent) act(m *message, name, rest string) {
	first, second, _ := strings.Cut(rest, ":")
	n, _ := strconv.Atoi(first)
	switch name {
	case "ask":
		a.ask(first, second)
	case "shell":
		a.permission(first, "Run "+second, "execute", object{"command": second, "description": "to see whether it works"})
	case "edit":
		a.permission(first, "Edit "+second, "edit", object{"file_path": second})
	case "call":
		a.request(rest, object{"sessionId": a.session})
	case "fail":
		a.meta = sessionFailure("error", rest, "it failed: "+rest)
	case "write":
		must(os.WriteFile(first, []byte(second), 0o644))
	case "pid":
		must(os.WriteFile(rest, fmt.Appendln(nil, os.Getpid()), 0o644))
	case "fork":
		must(exec.Command("sleep", "1000").Start())
	case "gate":
		f, err := os.Open(rest)
		must(err)
		_, _ = bufio.NewReader(f).ReadString('\n')
	case "exit":
		a.exit <- n
		select {}
	case "hang":
		<-a.cancelled
		a.end(m, "cancelled", "")
	case "steered":
		a.chunk("agent_message_chunk", "", "["+<-a.texts+"]")
	case "deaf":
		select {}
	case "error":
		text, data, _ := strings.Cut(second, ":")
		e := object{"code": n, "message": text}
		if data != "" {
			e["data"] = json.RawMessage(data)
		}
		a.answer(object{"id": m.ID, "error": e})
	case "end":
		a.end(m, first, second)
	case "again":
		a.end(m, "end_turn", "7")
	default:
		panic("no step " + name)
	}
}

// end answers the prompt.
func (a *agent) end(m *message, reason, tokens string) {
	answer := object{"stopReason": reason}
	if n, err := strconv.Atoi(tokens); err == nil {
		answer["usage"] = object{"totalTokens": n + 20, "inputTokens": 20, "outputTokens": n, "cachedReadTokens": 8}
	} else {
		answer["usage"] = nil
	}
	if a.meta != nil {
		answer["_meta"] = a.meta
	}
	a.answer(object{"id": m.ID, "result": answer})
}

// answer sends the answer to the prompt.
func (a *agent) answer(m object) {
	a.mu.Lock()
	a.answered = true
	a.mu.Unlock()
	a.playing.Store(false)
	a.send(m)
}

// ask asks for permission, and tells the outcome.
func (a *agent) ask(id, command string) {
	a.permission(id, "Run "+command, "execute", object{"command": strings.Fields(command), "cwd": "/x"})
}

func (a *agent) permission(id, title, kind string, input object) {
	option := func(kind string) object { return object{"optionId": "o-" + kind, "name": kind, "kind": kind} }
	a.request("session/request_permission", object{"sessionId": a.session,
		"toolCall": object{"toolCallId": id, "title": title, "kind": kind, "rawInput": input},
		"options":  []object{option("allow_once"), option("allow_always"), option("reject_once")}})
}

// request sends a request and makes its answer a part of the message.
func (a *agent) request(method string, params object) {
	a.mu.Lock()
	a.asked++
	id := strconv.Itoa(a.asked)
	answer := make(chan json.RawMessage, 1)
	a.answers[id] = answer
	a.mu.Unlock()
	a.send(object{"id": a.asked, "method": method, "params": params})
	a.chunk("agent_message_chunk", "", "["+string(<-answer)+"]")
}

// take takes the client's answer to a request.
func (a *agent) take(m *message) {
	a.mu.Lock()
	waits := a.answers[string(m.ID)]
	a.mu.Unlock()
	if m.Error != nil {
		waits <- json.RawMessage(strconv.Itoa(m.Error.Code))
		return
	}
	waits <- m.Result
}

func (a *agent) chunk(kind, id, text string) {
	u := object{"sessionUpdate": kind, "content": object{"type": "text", "text": text}}
	if id != "" {
		u["messageId"] = id
	}
	a.update(u)
}

func (a *agent) update(u object) {
	a.send(object{"method": "session/update", "params": object{"sessionId": a.session, "update": u}})
}

func (a *agent) reply(m *message, result any) { a.send(object{"id": m.ID, "result": result}) }

func (a *agent) send(m object) {
	m["jsonrpc"] = "2.0"
	b, err := json.Marshal(m)
	must(err)
	a.blow.Strike()
	a.write(append(b, '\n'))
}

// write writes a line; an agent whose client is gone ends.
func (a *agent) write(b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.out.Write(b); err != nil {
		select {
		case a.exit <- 1:
		default:
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
