package schemas

import (
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas/commands"
)

// SettingsKind is the kind Settings: the one object in reconcile.yaml.
var SettingsKind = Kind{
	Name: "Settings", Plural: "settings",
	Short: "The tree's settings (reconcile.yaml); every field has a default.",
	New:   func() Spec { return new(SettingsSpec) },
}

// SettingsPath is where the settings live, below the root.
const SettingsPath = "reconcile.yaml"

// SettingsSpec holds the settings of a tree.
type SettingsSpec struct {
	// Folders names the folders of the tree.
	Folders Folders `json:"folders,omitzero"`
	// Limits bound the tree as a whole.
	Limits Limits `json:"limits,omitzero"`
	// Budget bounds what the agents of the tree may use.
	Budget BudgetSettings `json:"budget,omitzero"`
	// Breaker says when an agent whose runs fail gets no work for a while.
	Breaker BreakerSettings `json:"breaker,omitzero"`
	// Runs says how long records of effects are kept and how effects are ended.
	Runs RunSettings `json:"runs,omitzero"`
	// Watch tunes reconcile --watch.
	Watch WatchSettings `json:"watch,omitzero"`
	// Git configures commits.
	Git GitSettings `json:"git,omitzero"`
	// GitHub says where the tree is mirrored.
	GitHub GitHubSettings `json:"github,omitzero"`
	// Clarification tunes how questions are routed.
	Clarification ClarificationSettings `json:"clarification,omitzero"`
	// Memory tunes the memory pipeline.
	Memory MemorySettings `json:"memory,omitzero"`
	// Commands says which commands an agent may ask for.
	Commands CommandSettings `json:"commands,omitzero"`
	// Tools says which tools may be installed that check code.
	Tools ToolSettings `json:"tools,omitzero"`
	// Archive says when specs that programs wrote leave specs/.
	Archive ArchiveSettings `json:"archive,omitzero"`
	// Profiles adds profiles of agents, by name, and changes fields of the built-in ones.
	Profiles map[string]Profile `json:"profiles,omitempty"`
	// Prices has what models cost, by name, and replaces prices of the built-in table. A name that ends in * is for all models that
	// begin so.
	Prices map[string]Price `json:"prices,omitempty"`
	// Index says what search indexes, and what makes its vectors.
	Index IndexSettings `json:"index,omitzero"`
	// Workspaces says how the folders are prepared in which agents work, and how long they are kept.
	Workspaces WorkspaceSettings `json:"workspaces,omitzero"`
	// People are those who can approve, with what proves who they are.
	People []Person `json:"people,omitempty" jsonschema:"maxItems=1000"`
}

// defaultStateFolder is Folders.State where settings do not say otherwise.
const defaultStateFolder = "state"

// Folders names the folders of the tree, relative to the root.
type Folders struct {
	// Specs holds desired state. Default specs.
	Specs string `json:"specs,omitempty" jsonschema:"maxLength=200,default=specs"`
	// State holds observed state. Default state.
	State string `json:"state,omitempty" jsonschema:"maxLength=200,default=state"`
	// Workspaces is the folder in which agents' workspaces are made: an absolute path, or one below the home folder that
	// begins with ~/. It must not be inside the tree. Default: $XDG_STATE_HOME/reconcile/ws, or ~/.local/state/reconcile/ws.
	Workspaces string `json:"workspaces,omitempty" jsonschema:"maxLength=1000"`
}

// WorkspaceSettings says how the folders are prepared in which agents work, and how long they are kept.
type WorkspaceSettings struct {
	// Setup is a program, with its arguments, that is run in a new workspace before the agent starts.
	Setup []string `json:"setup,omitempty" jsonschema:"minItems=1,maxItems=1000"`
	// LockFiles are the files that decide what setup makes: while they do not change, the ignored files that it made are
	// copied from the first workspace, and it is not run again. Without any it is run in every workspace.
	LockFiles []string `json:"lockFiles,omitempty" jsonschema:"maxItems=100"`
	// Timeout ends setup. Default 10m.
	Timeout *Duration `json:"timeout,omitempty" jsonschema:"default=10m"`
	// Share are ignored files and folders of the tree that each workspace gets a copy of.
	Share []string `json:"share,omitempty" jsonschema:"maxItems=100"`
	// Ports is the number of ports that each workspace has for itself, from RECONCILE_PORT_BASE on. Default 10.
	Ports int `json:"ports,omitempty" jsonschema:"minimum=1,maximum=1000,default=10"`
	// KeepFor is how long workspaces are kept whose work has landed or is parked. Default 72h.
	KeepFor *Duration `json:"keepFor,omitempty" jsonschema:"default=72h"`
	// KeepBytes is how much space all workspaces of the tree may take before those are removed, the oldest first, whose work
	// has landed or is parked. Default 10 GiB.
	KeepBytes *int `json:"keepBytes,omitempty" jsonschema:"minimum=0,maximum=1099511627776,default=10737418240"`
}

// Limits bound the tree as a whole.
type Limits struct {
	// Sessions is how many sessions may be Active at once. Default 100.
	Sessions int `json:"sessions,omitempty" jsonschema:"minimum=1,maximum=100000,default=100"`
	// Engineers is how many nodes of engineers may run at once, over all sessions. Default 500.
	Engineers int `json:"engineers,omitempty" jsonschema:"minimum=1,maximum=100000,default=500"`
	// ConcurrentTasks is how many nodes may run at once; 0 means the number of processors. Default 0.
	ConcurrentTasks int `json:"concurrentTasks,omitempty" jsonschema:"minimum=0,maximum=100000,default=0"`
	// Roles is how many nodes of agents with a role may run at once, over all sessions, by role. Default: no limit.
	Roles map[string]int `json:"roles,omitempty"`
	// Load is the load of the machine, in waiting or running tasks for each processor, above which nothing more starts while something
	// runs; 0 for none. It needs Linux. Default 0.
	Load float64 `json:"load,omitempty" jsonschema:"minimum=0,maximum=1000,default=0"`
	// Ageing is how long work waits for a place in one lane before it moves to the next higher one, up to high: it starts in the end
	// even if there is always work of a higher priority. 0s: it never moves. Default 5m.
	Ageing *Duration `json:"ageing,omitempty" jsonschema:"default=5m"`
	// Resume says what becomes of a node whose agent met a rate limit that ends at a known time: auto waits for that time and then
	// continues the agent's session, without using up an attempt; ask blocks the node until a person retries it; never counts
	// it as a failed attempt. Default auto.
	Resume string `json:"resume,omitempty" jsonschema:"enum=auto,enum=ask,enum=never,default=auto"`
	// TurnTokens is how many tokens are reserved for a turn of an agent while it runs, where no budget that applies to it bounds
	// its tokens more tightly. Default 200000.
	TurnTokens int64 `json:"turnTokens,omitempty" jsonschema:"minimum=1,maximum=1000000000,default=200000"`
	// FileSize is the largest file that is read, in bytes. Default 1 MiB.
	FileSize int `json:"fileSize,omitempty" jsonschema:"minimum=1024,maximum=67108864,default=1048576"`
}

// What becomes of a node whose agent met a rate limit.
const (
	ResumeAuto  = "auto"
	ResumeAsk   = "ask"
	ResumeNever = "never"
)

// RunSettings tunes effects and their records.
type RunSettings struct {
	// Keep is how many records of each node are kept under state/runs. Default 20.
	Keep int `json:"keep,omitempty" jsonschema:"minimum=1,maximum=100000,default=20"`
	// Grace is the time between SIGTERM and SIGKILL. Default 5s.
	Grace *Duration `json:"grace,omitempty" jsonschema:"default=5s"`
	// OutputLimit is how many bytes of a run's output are kept in its log. Default 10 MiB.
	OutputLimit int `json:"outputLimit,omitempty" jsonschema:"minimum=1024,maximum=1073741824,default=10485760"`
	// TailLimit is how many bytes of output go into a status. Default 4096.
	TailLimit int `json:"tailLimit,omitempty" jsonschema:"minimum=1,maximum=65536,default=4096"`
	// ResultLimit is how many bytes a node's JSON result may have. Default 65536.
	ResultLimit int `json:"resultLimit,omitempty" jsonschema:"minimum=2,maximum=1048576,default=65536"`
	// OutputCache is how many bytes of declared outputs are kept in .reconcile/cache/outputs, the newest first; 0 keeps
	// none. Default 1 GiB.
	OutputCache *int `json:"outputCache,omitempty" jsonschema:"minimum=0,maximum=1099511627776,default=1073741824"`
}

// ArchiveSettings says when spec files that programs wrote, and that have had their effect, move from specs/ to
// state/archive/, where they are read as before.
type ArchiveSettings struct {
	// After is how long after their effect applied actions, replies of ended threads and observations move; 0s: never.
	// Default 720h, which are 30 days.
	After *Duration `json:"after,omitempty" jsonschema:"default=720h"`
}

// ToolSettings says which tools may be installed that check code.
type ToolSettings struct {
	// Install lists the tools that "reconcile tools --install" installs without a question: names, as "reconcile tools" shows them, or
	// NAME@VERSION for that version only. Default: none.
	Install []string `json:"install,omitempty" jsonschema:"maxItems=1000"`
}

// WatchSettings tunes reconcile --watch.
type WatchSettings struct {
	// Debounce is the quiet time after a change before it is acted on. Default 200ms.
	Debounce *Duration `json:"debounce,omitempty" jsonschema:"default=200ms"`
	// Rescan is the time between full scans. Default 5m.
	Rescan *Duration `json:"rescan,omitempty" jsonschema:"default=5m"`
	// Poll is the time between scans where file notification is not available. Default 2s.
	Poll *Duration `json:"poll,omitempty" jsonschema:"default=2s"`
	// CommitDelay is the quiet time before written files are committed. Default 2s.
	CommitDelay *Duration `json:"commitDelay,omitempty" jsonschema:"default=2s"`
}

// ClarificationSettings tunes how questions are routed.
type ClarificationSettings struct {
	// SLAMinutes is the time for an answer where neither the request nor a workflow's step names one. Default 30.
	SLAMinutes *int `json:"slaMinutes,omitempty" jsonschema:"minimum=0,maximum=525600,default=30"`
	// RetryAfter is the time between the failure of an agent that was asked and the second try. Default 30s.
	RetryAfter *Duration `json:"retryAfter,omitempty" jsonschema:"default=30s"`
}

// MemorySettings tunes the memory pipeline.
type MemorySettings struct {
	// Enabled turns capture and recall on. Default true.
	Enabled *bool `json:"enabled,omitempty" jsonschema:"default=true"`
	// MaxTokens is the budget of a recall; 0 means no recall. Default 20000.
	MaxTokens *int `json:"maxTokens,omitempty" jsonschema:"minimum=0,maximum=10000000,default=20000"`
	// Weights say what makes an observation relevant.
	Weights RelevanceWeights `json:"weights,omitzero"`
	// CompactAfterDays is how long an issue's memory must be untouched before it is compacted automatically; 0 means
	// never. Default 90.
	CompactAfterDays *int `json:"compactAfterDays,omitempty" jsonschema:"minimum=0,maximum=36500,default=90"`
}

// On reports whether the tree has a memory.
func (m *MemorySettings) On() bool { return m.Enabled == nil || *m.Enabled }

// RelevanceWeights are the factors of the relevance of an observation (agentx-spec, memory pipeline 5.2, phase 3).
type RelevanceWeights struct {
	// Recency weighs 1/(1+days/30). Default 0.4.
	Recency *float64 `json:"recency,omitempty" jsonschema:"minimum=0,maximum=1,default=0.4"`
	// Recall weighs how often it was recalled, up to ten times. Default 0.2.
	Recall *float64 `json:"recall,omitempty" jsonschema:"minimum=0,maximum=1,default=0.2"`
	// Keyword weighs the share of the words asked for that its summary has. Default 0.4.
	Keyword *float64 `json:"keyword,omitempty" jsonschema:"minimum=0,maximum=1,default=0.4"`
	// Stale is an additional factor for observations whose anchors have changed. Default 0.5.
	Stale *float64 `json:"stale,omitempty" jsonschema:"minimum=0,maximum=1,default=0.5"`
}

// Default sets the defaults of missing fields.
func (s *SettingsSpec) Default() {
	orDefault(&s.Folders.Specs, "specs")
	orDefault(&s.Folders.State, defaultStateFolder)
	orDefault(&s.Limits.Sessions, 100)
	orDefault(&s.Limits.Engineers, 500)
	orNew(&s.Limits.Ageing, Duration(5*time.Minute))
	orDefault(&s.Limits.Resume, ResumeAuto)
	orDefault(&s.Limits.TurnTokens, defaultTurnTokens)
	orDefault(&s.Limits.FileSize, 1<<20)
	orDefault(&s.Runs.Keep, 20)
	orNew(&s.Runs.Grace, Duration(5*time.Second))
	orDefault(&s.Runs.OutputLimit, 10<<20)
	orDefault(&s.Runs.TailLimit, 4096)
	orDefault(&s.Runs.ResultLimit, 65536)
	orNew(&s.Runs.OutputCache, 1<<30)
	orNew(&s.Archive.After, Duration(30*24*time.Hour))
	orNew(&s.Watch.Debounce, Duration(200*time.Millisecond))
	orNew(&s.Watch.Rescan, Duration(5*time.Minute))
	orNew(&s.Watch.Poll, Duration(2*time.Second))
	orNew(&s.Watch.CommitDelay, Duration(2*time.Second))
	orDefault(&s.Git.Sign, "auto")
	orDefault(&s.Git.Via, "git")
	orNew(&s.Git.Poll, Duration(30*time.Second))
	orNew(&s.Git.ClaimFor, Duration(2*time.Minute))
	orNew(&s.GitHub.Commands.Roles, gitHubRoles()[:3:3])
	orNew(&s.GitHub.Pace, Duration(time.Second))
	orNew(&s.GitHub.Poll, Duration(time.Minute))
	orNew(&s.Clarification.SLAMinutes, DefaultClarifySLAMinutes)
	orNew(&s.Clarification.RetryAfter, Duration(30*time.Second))
	orNew(&s.Memory.Enabled, true)
	orNew(&s.Memory.MaxTokens, 20000)
	orNew(&s.Memory.Weights.Recency, 0.4)
	orNew(&s.Memory.Weights.Recall, 0.2)
	orNew(&s.Memory.Weights.Keyword, 0.4)
	orNew(&s.Memory.Weights.Stale, 0.5)
	orNew(&s.Memory.CompactAfterDays, 90)
	orNew(&s.Workspaces.Timeout, Duration(10*time.Minute))
	orDefault(&s.Workspaces.Ports, 10)
	orNew(&s.Workspaces.KeepFor, Duration(72*time.Hour))
	orNew(&s.Workspaces.KeepBytes, 10<<30)
	s.Breaker.defaults()
	s.Index.defaults()
}

// Check reports the problems of the settings for folders, watch, git, GitHub, commands, profiles and the index. Such are folders that
// overlap, an author, a branch, a repository or an address of the wrong form, waits that would keep a processor busy, and an
// embedder without its required fields.
func (s *SettingsSpec) Check(r *Report) {
	s.Folders.check(r)
	checkTimeout(r.At("watch", "rescan"), s.Watch.Rescan)
	checkTimeout(r.At("watch", "poll"), s.Watch.Poll)
	s.Limits.check(r)
	checkTimeout(r.At("breaker", "wait"), s.Breaker.Wait)
	s.Git.check(r)
	s.GitHub.check(r)
	s.Commands.check(r)
	checkProfiles(r, s.Profiles)
	checkPrices(r, s.Prices)
	s.Budget.Day.check(r.At("budget", "day"))
	s.Index.check(r)
	s.Workspaces.check(r)
	checkPeople(r, s.People)
}

func (w *WorkspaceSettings) check(r *Report) {
	checkArgv(r.At("workspaces", "setup"), w.Setup)
	if len(w.LockFiles) > 0 && len(w.Setup) == 0 {
		r.At("workspaces", "lockFiles").Errorf("missing", "lock files belong to a setup").suggest("add setup, or remove lockFiles")
	}
	for i, p := range w.LockFiles {
		checkPath(r.At("workspaces", "lockFiles", i), p, reads)
	}
	for i, p := range w.Share {
		checkPath(r.At("workspaces", "share", i), p, reads)
	}
	checkTimeout(r.At("workspaces", "timeout"), w.Timeout)
}

func (l *Limits) check(r *Report) {
	for _, role := range slices.Sorted(maps.Keys(l.Roles)) {
		at := r.At("limits", "roles", role)
		checkRef(at, role)
		if l.Roles[role] < 1 {
			at.Errorf("minimum", "%d is less than 1", l.Roles[role]).suggest("remove the role to set no limit")
		}
	}
}

func (f *Folders) check(r *Report) {
	if w := f.Workspaces; w != "" && !strings.HasPrefix(w, "~/") && !isAbsolute(w) {
		r.At("folders", "workspaces").Errorf("bad-path", "%q is neither an absolute path nor one that begins with ~/", w)
	}
	checkPath(r.At("folders", "specs"), f.Specs, writes)
	checkPath(r.At("folders", "state"), f.State, reads)
	specs, state := strings.ToLower(f.Specs)+"/", strings.ToLower(f.State)+"/"
	if strings.HasPrefix(specs, state) || strings.HasPrefix(state, specs) || specs == "./" || state == "./" {
		at := r.At("folders")
		at.Errorf("conflict", "specs (%q) and state (%q) must be two folders, neither inside the other", f.Specs, f.State)
	}
}

// shortestClaim leaves room for a few tries to renew a claim, and for ending what runs when that is in vain.
const shortestClaim = 10 * time.Second

// References returns nil: the settings refer to no object.
func (s *SettingsSpec) References() []Reference { return nil }

// orDefault sets *p to d where it is the zero value.
func orDefault[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

// orNew sets *p to a pointer to d where it is nil.
func orNew[T any](p **T, d T) {
	if *p == nil {
		*p = &d
	}
}

// CommandSettings says which commands an agent may run that asks for a permission; commands in DAGs are not subject to it.
// What is neither allowed nor blocked is asked of a person. docs/sandbox.md has the form of patterns and the default lists.
type CommandSettings struct {
	// Allow lists patterns of commands that need no person; "@default" represents the default list. Default: that list.
	Allow []string `json:"allow,omitempty" jsonschema:"maxItems=1000"`
	// Block lists patterns of commands that are refused, also where allow has them; "@default" represents the default list.
	// Default: that list.
	Block []string `json:"block,omitempty" jsonschema:"maxItems=1000"`
	// Roles are lists by the role of the agent, which replace allow for it; "@default" represents the role's default list.
	// Default: lists for architect and tester that only read.
	Roles map[string][]string `json:"roles,omitempty"`
	// Wait is how long a running agent waits for a person's answer; then its turn ends, and the node waits. Default 5m;
	// in a run that neither watches nor has a terminal, 0s.
	Wait *Duration `json:"wait,omitempty"`
}

// Lists are the lists of patterns.
func (c *CommandSettings) Lists() commands.Lists {
	return commands.Lists{Allow: c.Allow, Block: c.Block, Roles: c.Roles}
}

// Rules are the rules for agents of a role.
func (c *CommandSettings) Rules(role string) *commands.Rules {
	lists := c.Lists()
	return commands.Compile(lists.For(role))
}

func (c *CommandSettings) check(r *Report) {
	for i, p := range c.Allow {
		checkFilled(r.At("commands", "allow", i), p)
	}
	for i, p := range c.Block {
		checkFilled(r.At("commands", "block", i), p)
	}
	for role, list := range c.Roles {
		checkRef(r.At("commands", "roles", role), role)
		for i, p := range list {
			checkFilled(r.At("commands", "roles", role, i), p)
		}
	}
}
