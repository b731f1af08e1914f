package schemas

import (
	"regexp"
	"strings"
	"sync"
	"time"
)

// Runner says how an agent is run. Exactly one field is set, besides keyFrom and mcpServers.
type Runner struct {
	// Profile names the profile of a known agent, in place of the other fields: claude, codex, gemini, copilot, opencode, qwen,
	// or one of the settings.
	Profile string `json:"profile,omitempty" jsonschema:"maxLength=63,example=claude"`
	// Command runs a program once for each task.
	Command *CommandRunner `json:"command,omitempty"`
	// ACP runs a program that speaks the Agent Client Protocol over its standard streams.
	ACP *ACPRunner `json:"acp,omitempty"`
	// HTTP asks a model at an HTTP endpoint, without a program.
	HTTP *HTTPRunner `json:"http,omitempty"`
	// Human means that a person answers; {} is enough.
	Human *HumanRunner `json:"human,omitempty"`
	// KeyFrom says where the key of the model's service is, for a profile, or a command with one. The program then gets the address
	// of reconcile's metering proxy and a token of its run in place of the key. Default: the program uses its own login.
	KeyFrom *KeySource `json:"keyFrom,omitempty"`
	// MCPServers are servers of the Model Context Protocol that the agent starts and uses, by name, for acp or a profile. The profile's
	// command is then never used: it has no common way to be told of them.
	MCPServers map[string]MCPServer `json:"mcpServers,omitempty"`
}

// MCPServer is a program that speaks the Model Context Protocol over its standard streams.
type MCPServer struct {
	// Argv is the program and its arguments; no shell reads them.
	Argv []string `json:"argv" jsonschema:"minItems=1,maxItems=1000"`
	// Env is added to what the agent hands to its servers.
	Env Env `json:"env,omitempty"`
}

// HumanRunner means that a person answers.
type HumanRunner struct {
	// Contact says who that is, for messages: a name, a handle, a team.
	Contact string `json:"contact,omitempty" jsonschema:"maxLength=200"`
}

// ACPRunner runs a program that speaks the Agent Client Protocol, version 1, over its standard streams: one process for each
// task.
type ACPRunner struct {
	// Argv is the program and its arguments; no shell reads them.
	Argv []string `json:"argv" jsonschema:"minItems=1,maxItems=1000"`
	// Env is added to the clean environment (PATH, HOME, LANG and RECONCILE_*).
	Env Env `json:"env,omitempty"`
	// Mode is the mode to set, which says what the agent may do without asking. The agent must offer it. Default: the agent's.
	Mode string `json:"mode,omitempty" jsonschema:"maxLength=200"`
	// Timeout ends a run. Default 10m.
	Timeout *Duration `json:"timeout,omitempty" jsonschema:"default=10m"`
	// Silence ends a turn in which the agent sends no message for so long while no tool runs. Default 5m.
	Silence *Duration `json:"silence,omitempty" jsonschema:"default=5m"`
}

// CommandRunner runs a program once for each task.
type CommandRunner struct {
	// Profile says how the output is read, and the program where argv does not: claude, codex, gemini, copilot, opencode, qwen, or
	// one of the settings. Without one, output says how.
	Profile string `json:"profile,omitempty" jsonschema:"maxLength=63,example=claude"`
	// Argv is the program and its arguments; no shell reads them. Default: those of the profile.
	Argv []string `json:"argv,omitempty" jsonschema:"minItems=1,maxItems=1000"`
	// Env is added to the clean environment (PATH, HOME, LANG and RECONCILE_*).
	Env Env `json:"env,omitempty"`
	// Stdin is what the program reads: prompt (text), json (the task as JSON) or none. Default prompt.
	Stdin string `json:"stdin,omitempty" jsonschema:"enum=prompt,enum=json,enum=none,default=prompt"`
	// Output says how stdout is read: text (it is the result) or json (its value is). Default text.
	Output string `json:"output,omitempty" jsonschema:"enum=text,enum=json,default=text"`
	// Timeout ends a run. Default 10m.
	Timeout *Duration `json:"timeout,omitempty" jsonschema:"default=10m"`
	// Silence ends a run that has printed nothing for that long; with a profile, while no tool runs. Default: that of the profile;
	// without one, no limit.
	Silence *Duration `json:"silence,omitempty"`
}

// AsCommand returns how the agent's program is run: command, what profile represents, or a program that speaks a protocol, and a
// model at an endpoint, as a command that reads the prompt and prints text; nil for a person. Callers must not change it.
func (r *Runner) AsCommand() *CommandRunner {
	if h := r.HTTP; h != nil {
		return &CommandRunner{Stdin: "prompt", Output: "text", Timeout: h.Timeout, Silence: h.Silence}
	}
	if a := r.ACP; a != nil {
		return &CommandRunner{Argv: a.Argv, Env: a.Env, Stdin: "prompt", Output: "text", Timeout: a.Timeout, Silence: a.Silence}
	}
	if r.Command != nil || r.Profile == "" {
		return r.Command
	}
	return &CommandRunner{Profile: r.Profile, Stdin: "prompt", Output: "text", Timeout: new(defaultRunTimeout)}
}

// checkOne reports a runner that does not have exactly one field.
func (u *Runner) checkOne(r *Report) {
	var set []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"profile", u.Profile != ""}, {"command", u.Command != nil}, {"acp", u.ACP != nil}, {"http", u.HTTP != nil},
		{"human", u.Human != nil}} {
		if f.set {
			set = append(set, f.name)
		}
	}
	switch len(set) {
	case 0:
		r.At("runner").Errorf("missing", "says nothing").suggest("write command with an argv, a profile as claude, or human: {}")
	case 1:
	default:
		r.At("runner", set[1]).Errorf("conflict", "a runner is either %s or %s, not both", set[0], set[1]).
			also("the other one", "runner", set[0])
	}
}

// checkKey reports a key where nothing can be told to use it.
func (u *Runner) checkKey(r *Report) {
	at := r.At("runner", "keyFrom")
	switch u.KeyFrom.check(at); {
	case u.KeyFrom == nil, u.Profile != "", u.Command != nil && u.Command.Profile != "":
	case u.HTTP != nil:
		at.Errorf("conflict", "http has a keyFrom of its own").suggest("move it into http")
	case u.Human != nil:
		at.Errorf("conflict", "a person needs no key").suggest("remove it")
	default:
		at.Errorf("missing", "no profile says how the program is pointed at the metering proxy").
			suggest("name a profile, one of the settings for a program that none of the others fits")
	}
}

// checkServers reports servers that cannot be started, and those of a runner that is not told of them.
func (u *Runner) checkServers(r *Report) {
	if len(u.MCPServers) > 0 && u.Profile == "" && u.ACP == nil {
		r.At("runner", "mcpServers").Errorf("conflict", "only an agent over the Agent Client Protocol is told of servers").
			suggest("write runner.acp or runner.profile, or configure the servers in the agent's own settings")
	}
	for name, s := range u.MCPServers {
		checkRef(r.At("runner", "mcpServers").At(name), name)
		checkArgv(r.At("runner", "mcpServers", name, "argv"), s.Argv)
		s.Env.check(r, "runner", "mcpServers", name, "env")
	}
}

func (a *ACPRunner) check(r *Report) {
	checkArgv(r.At("runner", "acp", "argv"), a.Argv)
	a.Env.check(r, "runner", "acp", "env")
	checkLine(r.At("runner", "acp", "mode"), a.Mode)
	checkTimeout(r.At("runner", "acp", "timeout"), a.Timeout)
	checkTimeout(r.At("runner", "acp", "silence"), a.Silence)
}

func (c *CommandRunner) check(r *Report) {
	if c.Profile != "" {
		checkRef(r.At("runner", "command", "profile"), c.Profile)
	}
	if len(c.Argv) > 0 {
		checkArgv(r.At("runner", "command", "argv"), c.Argv)
	} else if c.Profile == "" {
		r.At("runner", "command").Errorf("missing", "has no argv").suggest("write argv, or a profile as claude")
	}
	checkTimeout(r.At("runner", "command", "silence"), c.Silence)
	c.Env.check(r, "runner", "command", "env")
	checkTimeout(r.At("runner", "command", "timeout"), c.Timeout)
}

// DefaultSilence ends a silent turn of an agent that names no time.
const DefaultSilence = Duration(5 * time.Minute)

// defaultRunTimeout ends the run of a command agent that names no timeout.
const defaultRunTimeout = Duration(10 * time.Minute)

// Levels of a sandbox.
const (
	SandboxNone     = "none"
	SandboxLandlock = "landlock"
	SandboxBwrap    = "bwrap"
)

// What the programs in a sandbox may connect to.
const (
	NetworkOpen  = "open"
	NetworkProxy = "proxy"
)

// Sandbox says what the programs of an agent may do on the machine. See docs/sandbox.md.
type Sandbox struct {
	// Level is the only level that will do: none, landlock or bwrap. A run fails where that one is not available. Default: the best one
	// of the machine for agents that work in a clone, none for all others.
	Level string `json:"level,omitempty" jsonschema:"enum=none,enum=landlock,enum=bwrap"`
	// Required fails a run where no level but none is available.
	Required bool `json:"required,omitempty"`
	// Write are further files and folders that may be written: absolute, below the home folder (~/.cache), or below the tree. They must
	// exist.
	Write []string `json:"write,omitempty" jsonschema:"maxItems=100"`
	// Read are the files and folders that may be read, besides those of the system, the workspace and what may be written. Default: all.
	Read []string `json:"read,omitempty" jsonschema:"maxItems=100"`
	// Network is what may be connected to: open (everything) or proxy (over TCP, only reconcile's own proxy for models and the ports of
	// the workspace). Default: proxy where the agent uses that proxy, else open.
	Network string `json:"network,omitempty" jsonschema:"enum=open,enum=proxy"`
}

func (s *Sandbox) check(r *Report) {
	if s.Level == SandboxNone {
		for _, f := range []struct {
			name string
			set  bool
		}{{"required", s.Required}, {"write", len(s.Write) > 0}, {"read", len(s.Read) > 0}, {"network", s.Network != ""}} {
			if f.set {
				r.At("sandbox", f.name).Errorf("conflict", "has no effect without a sandbox").also("the level", "sandbox", "level")
			}
		}
	}
	for i, p := range s.Write {
		checkGrant(r.At("sandbox", "write", i), p)
	}
	for i, p := range s.Read {
		checkGrant(r.At("sandbox", "read", i), p)
	}
}

// checkGrant reports a path that cannot be granted.
func checkGrant(s Spot, p string) {
	checkLine(s, p)
	switch rest := strings.TrimPrefix(p, "~/"); {
	case p == "" || p == "~":
		s.Errorf("bad-path", "names no file or folder").suggest("write an absolute path, as /var/cache/app, or one below the home folder, as ~/.cache")
	case p[0] == '/':
		if p == "/" {
			s.Errorf("bad-path", "is the whole machine").suggest("name a folder, or level: none")
		}
	case rest == p:
		checkPath(s, p, reads)
	case strings.Contains("/"+rest+"/", "/../"):
		s.Errorf("bad-path", "%q leaves the home folder", p)
	}
}

// KeySource says where the key of a model's service is. A spec never has the key itself. Exactly one field is set.
type KeySource struct {
	// Env names the variable of reconcile's own environment that has the key: one called RECONCILE_… or …_API_KEY.
	Env string `json:"env,omitempty" jsonschema:"maxLength=200,example=ANTHROPIC_API_KEY"`
	// File is a file with the key and nothing else, which only its owner can read: an absolute path, one that begins with ~/, or
	// one below the root of the tree that git ignores.
	File string `json:"file,omitempty" jsonschema:"maxLength=1000,example=~/.config/reconcile/anthropic.key"`
}

// String is where the key is, in words.
func (k KeySource) String() string {
	if k.File != "" {
		return "the file " + k.File
	}
	return k.Env
}

// check reports a source that is missing or double, and a variable that no tree may name. What stands there by mistake may be
// the key: it is not repeated.
func (k *KeySource) check(at Spot) {
	switch {
	case k == nil:
	case k.Env == "" && k.File == "":
		at.Errorf("missing", "says neither env nor file").suggest("write env and the name of the variable that has the key")
	case k.Env != "" && k.File != "":
		at.Errorf("conflict", "the key is either in a variable or in a file")
	case k.Env != "" && !isEnvName(k.Env):
		at.At("env").Errorf("bad-env", "this is no name for an environment variable; use letters, digits and _, no digit first").
			suggest("put the key into a variable, and write the variable's name here")
	case k.Env != "" && !IsKeyVariable(k.Env):
		at.At("env").Errorf("bad-env", "only variables called RECONCILE_… or …_API_KEY can be named").
			suggest("put the key into one of these")
	case k.File != "":
		checkFilePath(at.At("file"), k.File)
	}
}

// HTTPRunner asks a model at an HTTP endpoint, in this process: one request, or several with tools.
type HTTPRunner struct {
	// BaseURL is the address of the endpoint, as https://api.openai.com/v1 (/chat/completions is below it) or
	// https://api.anthropic.com (/v1/messages is). Other machines than this one need https. Unless it is on this machine and gets
	// no key, or is the provider's own and gets the provider's own variable, each user has to allow it: reconcile allow.
	BaseURL string `json:"baseURL" jsonschema:"minLength=1,maxLength=500,example=https://api.openai.com/v1"`
	// Wire is the protocol: openai (Chat Completions, which most other services and local servers speak, too) or anthropic
	// (Messages). Default openai.
	Wire string `json:"wire,omitempty" jsonschema:"enum=openai,enum=anthropic,default=openai"`
	// Model is the model to ask. Default: that of the agent.
	Model string `json:"model,omitempty" jsonschema:"maxLength=200"`
	// KeyFrom says where the key is. Default: no key is sent.
	KeyFrom *KeySource `json:"keyFrom,omitempty"`
	// Tools says what the model may do: none, read (list, search and read files of its workspace) or write (also write them, in a
	// workspace of its own). Default none: one request.
	Tools string `json:"tools,omitempty" jsonschema:"enum=none,enum=read,enum=write,default=none"`
	// MaxRequests bounds the requests of a turn with tools. Default 30.
	MaxRequests int `json:"maxRequests,omitempty" jsonschema:"minimum=1,maximum=1000,default=30"`
	// MaxTokens bounds the length of each answer of the model, in tokens. Default 8192.
	MaxTokens int `json:"maxTokens,omitempty" jsonschema:"minimum=1,maximum=1000000,default=8192"`
	// Timeout ends a run. Default 10m.
	Timeout *Duration `json:"timeout,omitempty" jsonschema:"default=10m"`
	// Silence ends a turn whose endpoint has sent nothing for that long. Default 5m.
	Silence *Duration `json:"silence,omitempty" jsonschema:"default=5m"`
}

// Protocols of endpoints for models.
const (
	WireOpenAI    = "openai"
	WireAnthropic = "anthropic"
)

// What an HTTP runner's model may do.
const (
	ToolsNone  = "none"
	ToolsRead  = "read"
	ToolsWrite = "write"
)

// Lacks is the tools of runner.http without which the agent cannot do what a pipeline asks of a role: to read the files of a change, of which
// its prompt has a part, and as tester to write some. "" if it lacks none.
func (r *Runner) Lacks(role string) string {
	switch {
	case r.HTTP == nil || r.HTTP.Tools == ToolsWrite:
		return ""
	case role == RoleTester:
		return ToolsWrite
	case r.HTTP.Tools != ToolsRead:
		return ToolsRead
	}
	return ""
}

func (h *HTTPRunner) defaults() {
	orDefault(&h.Wire, WireOpenAI)
	orDefault(&h.Tools, ToolsNone)
	orDefault(&h.MaxRequests, 30)
	orDefault(&h.MaxTokens, 8192)
	orNew(&h.Timeout, defaultRunTimeout)
	orNew(&h.Silence, DefaultSilence)
}

func (h *HTTPRunner) check(r *Report, model string) {
	at := r.At("runner", "http")
	checkEndpoint(at.At("baseURL"), h.BaseURL)
	checkLine(at.At("model"), h.Model)
	if h.Model == "" && model == "" {
		at.Errorf("missing", "names no model").suggest("add model: and its name")
	}
	h.KeyFrom.check(at.At("keyFrom"))
	checkTimeout(at.At("timeout"), h.Timeout)
	checkTimeout(at.At("silence"), h.Silence)
}

// checkEndpoint reports an address to which no key may be sent. It may have the key in it by mistake and is not repeated then.
func checkEndpoint(at Spot, address string) {
	if !IsEndpoint(address) {
		at.Errorf("bad-url", "is not an address that begins with https:// (or with http://, on this machine) and has neither a "+
			"user name nor a query in it")
	}
}

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	// Input and output are the prices of tokens that are read and written.
	Input  float64 `json:"input" jsonschema:"minimum=0,maximum=1000000"`
	Output float64 `json:"output" jsonschema:"minimum=0,maximum=1000000"`
	// Cached is the price of input that comes from a cache, cacheWrite of input that is written to one. Default: that of input.
	Cached     *float64 `json:"cached,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	CacheWrite *float64 `json:"cacheWrite,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	// Above is the number of tokens of input from which a request has the prices in long.
	Above int64      `json:"above,omitempty" jsonschema:"minimum=1,maximum=1000000000"`
	Long  *LongPrice `json:"long,omitempty"`
}

// LongPrice is the price of requests with more input than a bound.
type LongPrice struct {
	Input      float64  `json:"input" jsonschema:"minimum=0,maximum=1000000"`
	Output     float64  `json:"output" jsonschema:"minimum=0,maximum=1000000"`
	Cached     *float64 `json:"cached,omitempty" jsonschema:"minimum=0,maximum=1000000"`
	CacheWrite *float64 `json:"cacheWrite,omitempty" jsonschema:"minimum=0,maximum=1000000"`
}

// modelPattern is what a price is for: the name of a model, with * for the rest of it.
var modelPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*\*?$`) })

func checkPrices(r *Report, prices map[string]Price) {
	for name, p := range prices {
		at := r.At("prices", name)
		if !modelPattern().MatchString(name) {
			at.Errorf("bad-name", "%q is not the name of a model, or its beginning and *", name)
		}
		if (p.Above > 0) != (p.Long != nil) {
			at.Errorf("missing", "above and long need each other")
		}
	}
}
