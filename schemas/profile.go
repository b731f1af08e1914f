package schemas

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/extract"
)

// Profile says how the program of an agent is started, and where its output has what it reports. Places in the output are
// paths, as usage.input_tokens; see docs/agents.md. A profile of settings whose name is that of a built-in one replaces the
// fields that it has.
type Profile struct {
	// Argv is the program and its arguments; no shell reads them. "{prompt}" is replaced by the prompt, which goes to standard input
	// where no argument is "{prompt}"; "{model}" by the arguments in model, "{resume}" by those in resume, "{proxy}" by those of proxy, "{confined}" by those of confined.
	Argv []string `json:"argv,omitempty" jsonschema:"maxItems=1000"`
	// Model are the arguments that choose a model: "{value}" is its name. They are left out where the agent names none.
	Model []string `json:"model,omitempty" jsonschema:"maxItems=100"`
	// ModelVar names the variable that chooses the model, for programs in acp that offer only some models to choose from.
	ModelVar string `json:"modelVar,omitempty" jsonschema:"maxLength=200"`
	// Resume are the arguments that continue an earlier session: "{value}" is its id. They are left out in a new one.
	Resume []string `json:"resume,omitempty" jsonschema:"maxItems=100"`
	// Permit are the arguments that allow a command, "{value}", without a question. They are put after the program for each
	// command that a person has allowed, and each pattern of commands.allow without a wildcard.
	Permit []string `json:"permit,omitempty" jsonschema:"maxItems=100"`
	// Confined says how the program leaves it to reconcile's own sandbox what it may write.
	Confined ProfileConfined `json:"confined,omitzero"`
	// Env is set for the program; the agent's own env wins.
	Env map[string]string `json:"env,omitempty"`
	// PassEnv names variables that the program gets from the caller's environment: those that say where its configuration is.
	PassEnv []string `json:"passEnv,omitempty" jsonschema:"maxItems=100"`
	// Silence ends a turn that has printed nothing for that long while no tool runs. Default 5m.
	Silence *Duration `json:"silence,omitempty"`
	// Output is the form of standard output: jsonl (a JSON value in each line) or json (one value). Default jsonl.
	Output string `json:"output,omitempty" jsonschema:"enum=jsonl,enum=json"`
	// Events say what to read from which JSON value of the output.
	Events []ProfileEvent `json:"events,omitempty" jsonschema:"maxItems=100"`
	// Version are the arguments that make the program print its version.
	Version []string `json:"version,omitempty" jsonschema:"maxItems=20"`
	// Login says how to find out whether the program is logged in, without the network.
	Login ProfileLogin `json:"login,omitzero"`
	// Folders are where the program keeps its configuration and sessions; ~ is the home folder.
	Folders []string `json:"folders,omitempty" jsonschema:"maxItems=20"`
	// BaseURLVar and KeyVar name the variables for the address and the key of the model's service.
	BaseURLVar string `json:"baseURLVar,omitempty" jsonschema:"maxLength=200"`
	KeyVar     string `json:"keyVar,omitempty" jsonschema:"maxLength=200"`
	// Proxy says how the program is pointed at the metering proxy, where the agent's keyFrom is set.
	Proxy ProfileProxy `json:"proxy,omitzero"`
	// ACP is the command that speaks the Agent Client Protocol, for agents whose runner is the profile itself.
	ACP []string `json:"acp,omitempty" jsonschema:"maxItems=100"`
	// ACPMode is the mode to set there: what the agent may do without asking.
	ACPMode string `json:"acpMode,omitempty" jsonschema:"maxLength=200"`
}

// ProfileProxy says how a program is pointed at the metering proxy, in addition to baseURLVar and keyVar. In its values {url} is
// the address of the proxy, {token} the token of the run, and {value} the model.
type ProfileProxy struct {
	// Upstream is the address of the model's service, below which the program's requests go.
	Upstream string `json:"upstream,omitempty" jsonschema:"maxLength=500"`
	// Env is set for the program; variables with {value} only where the agent names a model.
	Env map[string]string `json:"env,omitempty"`
	// Args are the arguments that {proxy} represents. They are left out without a key.
	Args []string `json:"args,omitempty" jsonschema:"maxItems=100"`
	// ACP says that the command in acp is pointed at the proxy by the same variables. Without it, the command of the profile is
	// run.
	ACP bool `json:"acp,omitempty"`
}

// ProfileConfined says how a program does without a sandbox of its own, which it cannot make inside of reconcile's. It has no effect
// where nothing confines the run.
type ProfileConfined struct {
	// Args are the arguments that {confined} represents, in argv and in acp. In them {port} is a port of the run's workspace, to which
	// its programs may connect: no other one on this machine is sure to be open.
	Args []string `json:"args,omitempty" jsonschema:"maxItems=100"`
	// ACPMode is set in place of acpMode.
	ACPMode string `json:"acpMode,omitempty" jsonschema:"maxLength=200"`
}

// ProfileEvent says what to read from the JSON values that match. All fields but when and end are paths.
type ProfileEvent struct {
	// When has paths and the values that they must have; "*" is any value. An empty one matches every value.
	When map[string]string `json:"when,omitempty"`
	// End says what such an event means: success (a turn succeeds only with such an event, the last one counting), failure, or
	// retry (an error that the program goes on after).
	End string `json:"end,omitempty" jsonschema:"enum=success,enum=failure,enum=retry"`
	// Text is the agent's final text; the last one counts.
	Text string `json:"text,omitempty" jsonschema:"maxLength=500"`
	// Session is the id that resumes the session; model the model that answered, and stopReason why it stopped.
	Session    string `json:"session,omitempty" jsonschema:"maxLength=500"`
	Model      string `json:"model,omitempty" jsonschema:"maxLength=500"`
	StopReason string `json:"stopReason,omitempty" jsonschema:"maxLength=500"`
	// Usage says where tokens are counted.
	Usage ProfileUsage `json:"usage,omitzero"`
	// Cost is what the turn cost, in US dollars.
	Cost string `json:"cost,omitempty" jsonschema:"maxLength=500"`
	// ToolStarts and toolEnds are ids of tool calls.
	ToolStarts string `json:"toolStarts,omitempty" jsonschema:"maxLength=500"`
	ToolEnds   string `json:"toolEnds,omitempty" jsonschema:"maxLength=500"`
	// Denied says where the event lists tool calls that the rules of the program refused: they are asked of a person.
	Denied ProfileDenied `json:"denied,omitzero"`
	// Error describes the failure or retry.
	Error ProfileError `json:"error,omitzero"`
}

// ProfileUsage says where an event counts tokens.
type ProfileUsage struct {
	// Count says what the numbers are about: turn (this turn; the last event counts), step (a part of it; they are added) or
	// session (the session so far). Default turn.
	Count string `json:"count,omitempty" jsonschema:"enum=turn,enum=step,enum=session"`
	// Requests counts requests to the model; input and output tokens, cached the part of the input that came from a cache,
	// cacheWrite the part that was written to one. Input has to include both: write sums.
	Requests   string `json:"requests,omitempty" jsonschema:"maxLength=500"`
	Input      string `json:"input,omitempty" jsonschema:"maxLength=500"`
	Output     string `json:"output,omitempty" jsonschema:"maxLength=500"`
	Cached     string `json:"cached,omitempty" jsonschema:"maxLength=500"`
	CacheWrite string `json:"cacheWrite,omitempty" jsonschema:"maxLength=500"`
	// ContextUsed is the size of the last request, contextWindow that of the model's window.
	ContextUsed   string `json:"contextUsed,omitempty" jsonschema:"maxLength=500"`
	ContextWindow string `json:"contextWindow,omitempty" jsonschema:"maxLength=500"`
}

// ProfileDenied says where an event lists refused tool calls. Items is the path of the list, the others are paths in its items.
type ProfileDenied struct {
	Items string `json:"items,omitempty" jsonschema:"maxLength=500"`
	// Tool is the name of the tool; command what it was to run in a shell, and why the agent's reason.
	Tool    string `json:"tool,omitempty" jsonschema:"maxLength=500"`
	Command string `json:"command,omitempty" jsonschema:"maxLength=500"`
	Why     string `json:"why,omitempty" jsonschema:"maxLength=500"`
}

// ProfileError says where an event describes an error.
type ProfileError struct {
	// Message is the error's text, kind its type, status the HTTP status, and retryAfter a time or a number of seconds.
	Message    string `json:"message,omitempty" jsonschema:"maxLength=500"`
	Kind       string `json:"kind,omitempty" jsonschema:"maxLength=500"`
	Status     string `json:"status,omitempty" jsonschema:"maxLength=500"`
	RetryAfter string `json:"retryAfter,omitempty" jsonschema:"maxLength=500"`
}

// ProfileLogin says how to find out whether a program is logged in: by a command, or by a variable or file of which one exists.
type ProfileLogin struct {
	// Args are the arguments of a command that ends with exit code 0 if the program is logged in.
	Args []string `json:"args,omitempty" jsonschema:"maxItems=20"`
	// Env names variables that hold a key.
	Env []string `json:"env,omitempty" jsonschema:"maxItems=20"`
	// Files are files that a login leaves; ~ is the home folder.
	Files []string `json:"files,omitempty" jsonschema:"maxItems=20"`
}

// Placeholders in the arguments of a profile.
const (
	ArgPrompt   = "{prompt}"
	ArgModel    = "{model}"
	ArgResume   = "{resume}"
	ArgValue    = "{value}"
	ArgProxy    = "{proxy}"
	ArgConfined = "{confined}"
	ArgPort     = "{port}"
	ArgURL      = "{url}"
	ArgToken    = "{token}"
)

// ProfileOutputJSON is the Output of programs that print one JSON value.
const ProfileOutputJSON = "json"

// Meanings of a profile's events.
const (
	EventSuccess = "success"
	EventFailure = "failure"
	EventRetry   = "retry"
)

// What the numbers of a profile's usage are about.
const (
	CountTurn    = "turn"
	CountStep    = "step"
	CountSession = "session"
)

// checkProfiles reports profiles that cannot be used.
func checkProfiles(r *Report, profiles map[string]Profile) {
	for name, p := range profiles {
		if err := CheckName(name); err != nil {
			r.At("profiles", name).Errorf("bad-name", "%v", err)
		}
		p.check(r, name)
	}
}

func (p *Profile) check(r *Report, name string) {
	at := func(field ...any) Spot { return r.At(append([]any{"profiles", name}, field...)...) }
	if len(p.Argv) > 0 {
		checkArgv(at("argv"), p.Argv)
	}
	checkEnv(r, p.Env, "profiles", name, "env")
	checkTimeout(at("silence"), p.Silence)
	if u := p.Proxy.Upstream; u != "" {
		checkEndpoint(at("proxy", "upstream"), u)
	}
	checkEnv(r, p.Proxy.Env, "profiles", name, "proxy", "env")
	for field, args := range map[string][]string{"model": p.Model, "resume": p.Resume, "permit": p.Permit} {
		if len(args) > 0 && !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, ArgValue) }) {
			at(field).Errorf("missing", "no argument contains %s", ArgValue)
		}
	}
	for i := range p.Events {
		p.Events[i].check(at, i)
	}
}

func (e *ProfileEvent) check(at func(...any) Spot, i int) {
	for path := range e.When {
		checkExtract(at("events", i, "when", path), path)
	}
	for field, path := range map[string]string{"text": e.Text, "session": e.Session, "model": e.Model, "stopReason": e.StopReason,
		"cost": e.Cost, "toolStarts": e.ToolStarts, "toolEnds": e.ToolEnds, "denied": e.Denied.Items,
		"denied.tool": e.Denied.Tool, "denied.command": e.Denied.Command, "denied.why": e.Denied.Why} {
		checkExtract(at("events", i, field), path)
	}
	u := &e.Usage
	for field, path := range map[string]string{"requests": u.Requests, "input": u.Input, "output": u.Output, "cached": u.Cached,
		"cacheWrite": u.CacheWrite, "contextUsed": u.ContextUsed, "contextWindow": u.ContextWindow} {
		checkExtract(at("events", i, "usage", field), path)
	}
	for field, path := range map[string]string{"message": e.Error.Message, "kind": e.Error.Kind, "status": e.Error.Status,
		"retryAfter": e.Error.RetryAfter} {
		checkExtract(at("events", i, "error", field), path)
	}
}

func checkExtract(s Spot, path string) {
	if _, err := extract.Parse(path); err != nil {
		s.Errorf("bad-path", "%v", err)
	}
}

// With returns the profile with the fields of another one that are set there. Env is merged by name.
func (p Profile) With(over Profile) Profile {
	pickList := func(to *[]string, from []string) {
		if len(from) > 0 {
			*to = from
		}
	}
	pickList(&p.Argv, over.Argv)
	pickList(&p.Model, over.Model)
	pickList(&p.Resume, over.Resume)
	pickList(&p.Permit, over.Permit)
	pickList(&p.Confined.Args, over.Confined.Args)
	pickList(&p.PassEnv, over.PassEnv)
	pickList(&p.Version, over.Version)
	pickList(&p.Folders, over.Folders)
	pickList(&p.ACP, over.ACP)
	orOther(&p.Output, over.Output)
	orOther(&p.ACPMode, over.ACPMode)
	orOther(&p.Confined.ACPMode, over.Confined.ACPMode)
	orOther(&p.ModelVar, over.ModelVar)
	orOther(&p.BaseURLVar, over.BaseURLVar)
	orOther(&p.KeyVar, over.KeyVar)
	orOther(&p.Proxy.Upstream, over.Proxy.Upstream)
	pickList(&p.Proxy.Args, over.Proxy.Args)
	p.Proxy.ACP = p.Proxy.ACP || over.Proxy.ACP
	p.Proxy.Env = mergeEnv(p.Proxy.Env, over.Proxy.Env)
	if over.Silence != nil {
		p.Silence = over.Silence
	}
	if len(over.Events) > 0 {
		p.Events = over.Events
	}
	if l := over.Login; len(l.Args)+len(l.Env)+len(l.Files) > 0 {
		p.Login = l
	}
	p.Env = mergeEnv(p.Env, over.Env)
	return p
}

func orOther(to *string, other string) {
	if other != "" {
		*to = other
	}
}
