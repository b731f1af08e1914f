package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/toolscan"
	"reconcile.dev/reconcile/cmd/reconcile/internal/versions"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/preferences"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// ToolsRequest requests the tools of a project.
type ToolsRequest struct {
	CheckRequest
	Categories []checks.Category // none: all
	Language   string            // only tools of this language; "": all
}

// ToolsResult are the tools of a project.
type ToolsResult struct {
	Root  string             `json:"root"`
	Tools []tools.Discovered `json:"tools"`
	// Undecided are the questions that a person has to answer: nothing says which tool the project uses.
	Undecided []tools.Open `json:"undecided,omitempty"`
	// Research is what AskTools asked a knowledge agent; nil where it did not.
	Research *Research `json:"research,omitempty"`
}

// Tools discovers the tools with which a project checks its code. It runs none of them.
func Tools(ctx context.Context, env Env, q ToolsRequest) (r *ToolsResult, err error) {
	defer func() { err = typed(err) }()
	p, err := env.openProject(ctx, &q.CheckRequest)
	if err != nil {
		return nil, err
	}
	d, err := p.discovery()
	if err != nil {
		return nil, err
	}
	r = &ToolsResult{Root: p.root, Tools: []tools.Discovered{}}
	wanted := func(category checks.Category, language string) bool {
		return (len(q.Categories) == 0 || slices.Contains(q.Categories, category)) && (q.Language == "" || strings.EqualFold(language, q.Language))
	}
	for _, o := range d.Open {
		asked := o.Category != checks.LSP || slices.Contains(q.Categories, o.Category) // checks need none
		if asked && wanted(o.Category, o.Language) && len(p.scope) == 0 {
			r.Undecided = append(r.Undecided, o)
		}
	}
	for _, t := range d.Found {
		if wanted(t.Category, t.Language) &&
			(len(p.scope) == 0 || slices.ContainsFunc(p.scope, func(s string) bool { return t.Holds(s) || strings.HasPrefix(t.Folder, s+"/") })) {
			r.Tools = append(r.Tools, t)
		}
	}
	return r, nil
}

const (
	versionTime   = 5 * time.Second  // a program has this long to tell its version,
	discoveryTime = 10 * time.Second // and none is asked later than this after the discovery began
)

// findTools discovers the tools of the project, or returns a recent discovery. Programs of the project are asked for their versions
// only where its checks may run.
func (p *project) findTools(ctx context.Context, q *CheckRequest) (d toolscan.Discovery, err error) {
	if err := p.recover(ctx); err != nil {
		p.env.warn(err.Error())
	}
	allowed, _, err := p.allowed()
	if err != nil {
		return d, err
	}
	allowed = allowed && (q.Sandbox == "" || q.Sandbox == schemas.SandboxNone) // else a program of the project would tell its version outside of the sandbox
	if p.chose, err = p.choices(ctx); err != nil {
		return d, err
	}
	searchPath, began := p.env.Tree.Getenv("PATH"), time.Now()
	key := fmt.Sprint(tools.Edition(), allowed, p.git, searchPath, p.chose)
	c, cacheErr := p.cache()
	if cacheErr == nil {
		defer c.Close()
		if kept, ok := toolscan.Load(c.root, c.dir, p.root, key, p.env.Tree.Now()); ok && !q.Refresh {
			return kept, nil
		}
	}
	files, err := p.allFiles()
	if err != nil {
		return d, err
	}
	facts := toolscan.Scan(p.root, files, searchPath)
	facts.Choices = p.chose
	d.Found = tools.Discover(facts)
	d.Open = tools.Undecided(facts, d.Found)
	if cacheErr != nil {
		return d, nil // without a place for the answers no program is asked
	}
	asking, cancel := context.WithDeadline(ctx, began.Add(discoveryTime))
	defer cancel()
	facts.Said, facts.Late = p.versions(asking, c, tools.Questions(d.Found), allowed, q.Refresh)
	if ctx.Err() != nil {
		return d, ctx.Err()
	}
	if len(facts.Said)+len(facts.Late) > 0 {
		d.Found = tools.Discover(facts)
	}
	if err := toolscan.Save(c.root, c.dir, c.temp, p.root, key, toolscan.Watched(p.root, searchPath, facts, d.Found), d, began, p.env.Tree.Now()); err != nil {
		p.env.warn(fmt.Sprintf("what was discovered is not kept: %v", err))
	}
	return d, nil
}

// choices are what people and agents chose: those that a verification was given, or else those of the preferences of the tree; none without a tree.
func (p *project) choices(ctx context.Context) (all []tools.Choice, err error) {
	if given := p.env.Tree.Getenv(tools.ChoicesVar); given != "" {
		if err := json.Unmarshal([]byte(given), &all); err != nil {
			return nil, badRequest("%s is no list of choices: %v", tools.ChoicesVar, err)
		}
		return all, nil
	}
	s, t, err := p.treeWith(ctx, schemas.PreferenceKind)
	if t == nil {
		return nil, err
	}
	defer s.Close()
	return preferences.Tools(t, p.env.Tree.Getenv("RECONCILE_SESSION")), nil
}

// undecided are the questions that remain about which tools of some categories to use, for the languages of the files that are asked for.
func (p *project) undecided(categories ...checks.Category) (all []schemas.ToolQuestion, err error) {
	d, err := p.discovery()
	if err != nil {
		return nil, err
	}
	for _, o := range d.Open {
		concerns := func(f string) bool {
			return tools.LanguageOf(f) == o.Language || toolscan.ScriptLanguage(p.root, f) == o.Language
		}
		if !slices.Contains(categories, o.Category) || p.narrow && !slices.ContainsFunc(p.files, concerns) {
			continue
		}
		chosen := ""
		for _, c := range p.chose {
			if c.Language == o.Language && c.Category == o.Category {
				chosen = c.Tool
			}
		}
		all = append(all, o.Question(chosen))
	}
	return all, nil
}

// ChooseToolRequest chooses a tool for a language and a category, in place of what discovery would find.
type ChooseToolRequest struct {
	Category checks.Category
	Language string
	Tool     string
	Session  string // only for this session; "": for all
	Reason   string
	By       string // who chooses; "": the caller
}

// ChooseToolResult is a preference that was written.
type ChooseToolResult struct {
	Path   string `json:"path"`   // of its file
	Source string `json:"source"` // explicit, or inferred in a run of an agent
}

// ToolOptions lists the tools among which a request may choose, for the project in dir.
func ToolOptions(ctx context.Context, env Env, dir string, q ChooseToolRequest) (all []tools.Option, err error) {
	defer func() { err = typed(err) }()
	if _, err := chosenTool(q); len(tools.For(q.Language, q.Category)) == 0 {
		return nil, err
	}
	p, err := env.openProject(ctx, &CheckRequest{Dir: dir})
	if err != nil {
		return nil, err
	}
	return tools.Options(toolscan.Scan(p.root, nil, p.env.Tree.Getenv("PATH")), q.Language, q.Category), nil
}

// ChooseTool writes a Preference for a tool. An agent that calls it in its run states an inference, which never wins over a person.
func ChooseTool(ctx context.Context, env Env, q ChooseToolRequest) (r *ChooseToolResult, err error) {
	defer func() { err = typed(err) }()
	tool, err := chosenTool(q)
	if err != nil {
		return nil, err
	}
	who, err := env.Caller.Actor("--by", q.By)
	if err != nil {
		return nil, err
	}
	s, t, err := env.load(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if q.Session != "" {
		e, err := findSession(t, q.Session)
		if err != nil {
			return nil, badRequest("%w", err)
		}
		q.Session = e.Name
	}
	spec := &schemas.PreferenceSpec{Domain: schemas.PreferenceTools, Key: q.Language + "/" + string(q.Category), Value: tool, Source: schemas.PreferenceExplicit,
		Session: q.Session, Reason: env.redact("--reason", q.Reason), By: who.Name, Proof: who.Proof, At: schemas.NewTime(env.Tree.Now())}
	if env.Caller.InRun() {
		spec.Source = schemas.PreferenceInferred
	}
	r = &ChooseToolResult{Source: spec.Source}
	if r.Path, err = specs.Write(s, t, schemas.PreferenceKind, preferenceName(q.Category, spec), spec); err != nil {
		return nil, err
	}
	env.note("wrote %s", r.Path)
	_, err = env.applyByRun(ctx, t, env.Caller.InRun())
	return r, err
}

// preferenceName is the name of a preference for a tool.
func preferenceName(category checks.Category, spec *schemas.PreferenceSpec) string {
	name := fmt.Sprintf("tools-%s-%s", strings.ReplaceAll(string(category), "_", "-"), spec.At.UTC().Format("20060102t150405z"))
	return specs.FitName(name, "-"+specs.NameDigest(3, spec.Key, spec.Value, spec.Session, spec.By, spec.Reason, spec.At.UnixMilli()))
}

// chosenTool returns the name of the tool that a request chooses, if the catalogue lists it for that category and language.
func chosenTool(q ChooseToolRequest) (string, error) {
	if !slices.Contains(checks.Categories(), q.Category) {
		return "", badField("category", " %q is none%s", q.Category, schemas.DidYouMean(string(q.Category), words(checks.Categories())))
	}
	known := tools.For(q.Language, q.Category)
	for _, t := range known {
		if t == q.Tool {
			return t, nil
		}
	}
	if len(known) == 0 {
		return "", badField("language", " %q: no %s is known for it%s", q.Language, q.Category, schemas.DidYouMean(q.Language, tools.Languages()))
	}
	return "", badField("tool", " %q is no known %s of %s%s; choose one of %s", q.Tool, q.Category, q.Language, schemas.DidYouMean(q.Tool, known),
		strings.Join(known, ", "))
}

func words[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = string(x)
	}
	return out
}

// versions asks programs for their versions, again if refresh is set. Where the checks are not allowed, these are programs from outside of the
// project, without a way to those in it.
func (p *project) versions(ctx context.Context, c cached, all []tools.Question, allowed, refresh bool) (said, late map[tools.Question]string) {
	searchPath := p.env.Tree.Getenv("PATH")
	if !allowed {
		searchPath = strings.Join(slices.DeleteFunc(filepath.SplitList(searchPath), p.contains), string(filepath.ListSeparator))
		all = slices.DeleteFunc(all, func(q tools.Question) bool { return p.contains(q.Path) || p.contains(filepath.Dir(q.Path)) })
	}
	answers := c.dir + "/programs.json"
	if refresh {
		_ = c.root.Remove(answers) // what remains is used
	}
	book := versions.OpenAt(p.root, c.root, answers, c.temp, secrets.RedactBytes)
	said, late = book.Ask(ctx, all, searchPath, versionTime)
	if err := book.Save(); err != nil {
		p.env.warn(err.Error())
	}
	return said, late
}

// contains reports whether a path lies in the project, also by a link; one that cannot be resolved counts.
func (p *project) contains(at string) bool {
	at, err := filepath.EvalSymlinks(at)
	if err != nil || !filepath.IsAbs(at) {
		return true
	}
	_, ok := worktree.Within(p.root, at)
	return ok
}

// cached is a folder for the cache of a project: of its tree, or the user's where it has none.
type cached struct {
	root *os.Root
	dir  string // below root, with slashes
	temp string // where its files are written first
}

func (c cached) Close() { c.root.Close() }

// cache opens the cache folder of the project.
func (p *project) cache() (c cached, err error) {
	if c.root, err = regular.Root(p.root); err != nil {
		return c, err
	}
	if fi, err := c.root.Lstat(".reconcile"); err == nil && fi.IsDir() {
		c.dir, c.temp = ".reconcile/cache/tools", ".reconcile/tmp"
	} else {
		c.root.Close()
		user, err := os.UserCacheDir()
		if err != nil {
			return c, err
		}
		own := filepath.Join(user, "reconcile")
		if err := os.MkdirAll(own, 0o700); err != nil {
			return c, err
		}
		if c.root, err = regular.Root(own); err != nil {
			return c, err
		}
		sum := sha256.Sum256([]byte(p.root))
		c.dir, c.temp = "tools/"+hex.EncodeToString(sum[:8]), "tmp"
	}
	if err := c.root.MkdirAll(c.dir, 0o700); err != nil {
		c.root.Close()
		return c, err
	}
	return c, nil
}
