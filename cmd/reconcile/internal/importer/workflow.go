package importer

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"reconcile.dev/reconcile/schemas"
)

// Source is a file with its content.
type Source struct {
	Path string // below the root, with slashes
	Data []byte
}

// workflow is the used part of a GitHub Actions workflow.
type workflow struct {
	Env      yaml.Node   `yaml:"env"`
	Defaults runDefaults `yaml:"defaults"`
	Jobs     yaml.Node   `yaml:"jobs"`
}

type runDefaults struct {
	Run struct {
		Shell string `yaml:"shell"`
		Dir   string `yaml:"working-directory"`
	} `yaml:"run"`
}

type job struct {
	Needs    yaml.Node   `yaml:"needs"`
	If       yaml.Node   `yaml:"if"`
	Uses     string      `yaml:"uses"`
	RunsOn   yaml.Node   `yaml:"runs-on"`
	Env      yaml.Node   `yaml:"env"`
	Defaults runDefaults `yaml:"defaults"`
	Steps    []yaml.Node `yaml:"steps"`
}

type step struct {
	Name    string    `yaml:"name"`
	ID      string    `yaml:"id"`
	If      yaml.Node `yaml:"if"`
	Uses    string    `yaml:"uses"`
	Run     string    `yaml:"run"`
	Shell   string    `yaml:"shell"`
	Dir     string    `yaml:"working-directory"`
	Env     yaml.Node `yaml:"env"`
	Minutes yaml.Node `yaml:"timeout-minutes"`
	Ignored yaml.Node `yaml:"continue-on-error"`
}

// workflows finds the commands of workflow files: each run step of a job is one. The steps of a job need each other in
// their order, and the first of them the last ones of the jobs that the job needs.
func workflows(files []Source) (Found, error) {
	var found Found
	for _, f := range files {
		w := &workflowReader{path: f.Path, found: &found, ends: map[string][]string{}, jobs: map[string]*yaml.Node{}}
		if len(files) > 1 {
			w.prefix = strings.TrimSuffix(path.Base(f.Path), path.Ext(f.Path)) + " "
		}
		if err := w.read(f.Data); err != nil {
			return found, err
		}
	}
	return found, nil
}

// workflowReader reads one file.
type workflowReader struct {
	path, prefix string
	found        *Found
	workflow     workflow
	env          map[string]string
	jobs         map[string]*yaml.Node
	ends         map[string][]string // of the jobs read so far: their last commands
}

func (w *workflowReader) read(src []byte) error {
	if err := yaml.Unmarshal(src, &w.workflow); err != nil {
		return fmt.Errorf("%s is not YAML of a workflow: %w", w.path, err)
	}
	w.env = w.literals(&w.workflow.Env)
	names := []string{}
	for name, node := range fieldsOf(&w.workflow.Jobs) {
		if w.jobs[name.Value] == nil {
			names = append(names, name.Value)
		}
		w.jobs[name.Value] = node
	}
	for _, name := range names {
		w.job(name)
	}
	return nil
}

func (w *workflowReader) from(n *yaml.Node) string { return fmt.Sprintf("%s:%d", w.path, n.Line) }

// job reads a job, once, after those that it needs.
func (w *workflowReader) job(name string) []string {
	if ends, ok := w.ends[name]; ok {
		return ends
	}
	w.ends[name] = nil // a job that needs itself adds nothing
	node := w.jobs[name]
	if node == nil {
		return nil
	}
	var j job
	if err := node.Decode(&j); err != nil {
		w.found.omit(w.from(node), name, "it is not understood: %s", short(strings.TrimPrefix(err.Error(), "yaml: ")))
		return nil
	}
	var before []string
	for _, needed := range listOf(&j.Needs) {
		before = append(before, w.job(needed)...)
	}
	before = unique(before)
	w.ends[name] = before
	if why := jobOmitted(&j); why != "" {
		w.found.omit(w.from(node), name, "%s", why)
		return before
	}
	env := maps.Clone(w.env)
	maps.Copy(env, w.literals(&j.Env))
	for i := range j.Steps {
		if c, ok := w.step(name, i, &j, env); ok {
			c.Needs = before
			w.found.Commands = append(w.found.Commands, c)
			before = []string{c.ID}
		}
	}
	w.ends[name] = before
	return before
}

func jobOmitted(j *job) string {
	switch {
	case j.Uses != "":
		return "it uses another workflow"
	case j.If.Kind != 0:
		return "it depends on a condition of GitHub"
	case slices.ContainsFunc(listOf(&j.RunsOn), func(on string) bool { return strings.HasPrefix(on, "windows") }):
		return "it is for Windows"
	}
	return ""
}

// step returns the command of a step, if possible.
func (w *workflowReader) step(jobName string, i int, j *job, env map[string]string) (c Command, ok bool) {
	node := &j.Steps[i]
	var s step
	title := fmt.Sprintf("%s, step %d", jobName, i+1)
	if err := node.Decode(&s); err != nil {
		w.found.omit(w.from(node), title, "it is not understood: %s", short(strings.TrimPrefix(err.Error(), "yaml: ")))
		return c, false
	}
	if name := short(cmp.Or(s.Name, s.ID, s.Uses)); name != "" {
		title = jobName + ", " + name
	}
	s.Shell = cmp.Or(s.Shell, j.Defaults.Run.Shell, w.workflow.Defaults.Run.Shell)
	s.Dir = path.Clean(cmp.Or(s.Dir, j.Defaults.Run.Dir, w.workflow.Defaults.Run.Dir, "."))
	own, why := stepEnv(&s)
	if why == "" {
		why = stepOmitted(&s)
	}
	if why != "" {
		w.found.omit(w.from(node), title, "%s", why)
		return c, false
	}
	all := maps.Clone(env)
	maps.Copy(all, own)
	name := cmp.Or(expressionless(s.Name), s.ID, commandWords(s.Run), fmt.Sprint(i+1))
	c = Command{ID: fmt.Sprintf("%s %s %d", w.path, jobName, i), Name: w.prefix + jobName + " " + name, Description: short(expressionless(s.Name)),
		Run: stepRun(s.Run, s.Shell), Env: all, Minutes: minutes(&s.Minutes), Held: stepHeld(jobName, name), From: w.from(node)}
	if s.Dir != "." {
		c.Dir = s.Dir
	}
	return c, true
}

// forGitHub returns the parts that only a GitHub runner provides.
var forGitHub = expression(`\b(GITHUB|RUNNER|ACTIONS)_[A-Z_]+`)

// scriptLength is the maximum length of a step's text: systems limit the size of an argument.
const scriptLength = 100_000

func stepOmitted(s *step) string {
	switch {
	case s.Uses != "":
		return "it uses an action"
	case strings.TrimSpace(s.Run) == "":
		return "it runs nothing"
	case s.If.Kind != 0:
		return "it depends on a condition of GitHub"
	case strings.Contains(s.Run+s.Shell+s.Dir, "${{"):
		return "it has an expression of GitHub"
	case forGitHub().MatchString(s.Run):
		return "it reads " + forGitHub().FindString(s.Run) + ", which GitHub sets"
	case s.Ignored.Kind != 0 && s.Ignored.Value != "false":
		return "it may fail, which a node may not"
	case s.Shell != "" && s.Shell != "bash" && s.Shell != "sh":
		return "its shell is " + short(s.Shell)
	case s.Dir != "." && !schemas.IsPath(s.Dir):
		return "its folder is none below the root"
	case len(s.Run) > scriptLength || strings.ContainsRune(s.Run, 0):
		return "its text is too long"
	case strings.HasPrefix(strings.TrimSpace(s.Run), "reconcile"):
		return "it runs reconcile"
	}
	return ""
}

func stepEnv(s *step) (env map[string]string, why string) {
	env = map[string]string{}
	for name, value := range fieldsOf(&s.Env) {
		switch {
		case strings.Contains(value.Value, "${{"):
			return nil, "its variable " + short(name.Value) + " has an expression of GitHub"
		case !isVariable(name.Value) || value.Kind != yaml.ScalarNode || strings.ContainsRune(value.Value, 0):
			return nil, "its variables are not understood"
		}
		env[name.Value] = value.Value
	}
	return env, ""
}

// literals returns the variables of a workflow or a job that have no expressions; it lists the others by name.
func (w *workflowReader) literals(n *yaml.Node) map[string]string {
	env := map[string]string{}
	for name, value := range fieldsOf(n) {
		switch {
		case strings.Contains(value.Value, "${{"):
			w.found.omit(w.from(name), "variable "+short(name.Value), "it has an expression of GitHub")
		case !isVariable(name.Value) || value.Kind != yaml.ScalarNode || strings.ContainsRune(value.Value, 0):
			w.found.omit(w.from(name), "variable "+short(name.Value), "it is not understood")
		default:
			env[name.Value] = value.Value
		}
	}
	return env
}

var variableForm = expression(`^[A-Za-z_][A-Za-z0-9_]*$`)

func isVariable(name string) bool {
	return variableForm().MatchString(name) && !strings.HasPrefix(strings.ToUpper(name), "RECONCILE_")
}

// expression compiles a regular expression at its first use: most commands use none.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// plainWords are commands that need no shell, builtins those that only a shell has.
var plainWords = expression(`^[A-Za-z0-9_./:@%+,-]+( +[A-Za-z0-9_./:@%+,=-]+)*$`)

var builtins = []string{".", ":", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare", "eval", "exec", "exit",
	"export", "fg", "for", "function", "if", "jobs", "let", "local", "popd", "pushd", "read", "readonly", "return", "select", "set", "shift",
	"shopt", "source", "time", "times", "trap", "type", "typeset", "ulimit", "umask", "unset", "until", "wait", "while"}

// stepRun returns how GitHub runs a step's text: bash -e by default. A plain command needs no shell.
func stepRun(text, shell string) []string {
	one := strings.TrimSpace(text)
	if words := strings.Fields(one); plainWords().MatchString(one) && !slices.Contains(builtins, words[0]) {
		return words
	}
	switch shell {
	case "bash":
		return []string{"bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text}
	case "sh":
		return []string{"sh", "-e", "-c", text}
	}
	return []string{"bash", "-e", "-c", text}
}

// stepHeld returns why a step is held: a command of a workflow terminates, but it may publish.
func stepHeld(jobName, name string) string {
	for _, word := range []string{jobName, name} {
		parts := strings.FieldsFunc(strings.ToLower(word), func(r rune) bool { return r < 'a' || r > 'z' })
		if len(parts) > 0 && slices.Contains([]string{"deploy", "publish", "push", "release", "upload"}, parts[0]) {
			return heldOutside
		}
	}
	return ""
}

// expressionless returns the text, or "" if it has an expression.
func expressionless(text string) string {
	if strings.Contains(text, "${{") {
		return ""
	}
	return text
}

// minutes returns a time limit in whole minutes; 0 for none or an expression.
func minutes(n *yaml.Node) int {
	const most = 60 * 24 * 365
	if m, err := strconv.Atoi(n.Value); err == nil && m > 0 && m < most {
		return m
	}
	return 0
}

// fieldsOf returns the keys and values of a mapping; aliases are followed once.
func fieldsOf(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		m := followed(n)
		if m == nil || m.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			if !yield(m.Content[i], followed(m.Content[i+1])) {
				return
			}
		}
	}
}

func followed(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// listOf returns the texts of a list, or a single text as a list.
func listOf(n *yaml.Node) (texts []string) {
	n = followed(n)
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return []string{n.Value}
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			if item = followed(item); item.Kind == yaml.ScalarNode {
				texts = append(texts, item.Value)
			}
		}
	}
	return texts
}
