// Package commands decides about commands that agents ask to run: whether rules allow or block them, or whether a person
// must decide. A command is a list of arguments, or a text for a shell. The text is parsed, and is allowed only if it
// consists of simple commands of literal arguments, each of which is allowed: a pattern never matches text. What the
// package does not understand is asked. Everything here is a pure function of its arguments.
package commands

import (
	"fmt"
	"slices"
)

// Command is what an agent asks to run.
type Command struct {
	Argv  []string // program and arguments; with Shell one text
	Shell bool
}

// Decision is what rules say about a command.
type Decision int

// Decisions.
const (
	Ask   Decision = iota // a person decides
	Allow                 // it may run
	Block                 // it is refused
)

func (d Decision) String() string { return [...]string{"ask", "allow", "block"}[d] }

// Verdict is a decision with its reason.
type Verdict struct {
	Decision Decision
	// Why is the reason in words. Pattern is the pattern that blocks.
	Why     string
	Pattern string
}

// Rules are compiled lists of patterns. The zero value asks about everything.
type Rules struct{ allow, block []*pattern }

// Compile compiles patterns. Those that are not valid match nothing.
func Compile(allow, block []string) *Rules { return &Rules{patterns(allow), patterns(block)} }

func patterns(list []string) (out []*pattern) {
	for _, text := range list {
		if p, err := parsePattern(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// Check returns why a pattern is not valid; nil if it is.
func Check(text string) error {
	_, err := parsePattern(text)
	return err
}

// Decide decides about a command. A block wins over everything else.
func (r *Rules) Decide(c Command) Verdict {
	s := read(c)
	for _, call := range s.calls {
		for _, p := range r.block {
			if p.blocks(call) {
				return Verdict{Block, fmt.Sprintf("%s is blocked by %q", call, p.text), p.text}
			}
		}
	}
	if s.unclear != "" {
		return Verdict{Decision: Ask, Why: "it " + s.unclear}
	}
	for _, call := range s.plain {
		if !slices.ContainsFunc(r.allow, func(p *pattern) bool { return p.allows(call) }) {
			return Verdict{Decision: Ask, Why: fmt.Sprintf("no rule allows %s", Line(Command{Argv: call}))}
		}
	}
	return Verdict{Decision: Allow}
}

// Exact returns patterns that allow the command and nothing else. The error says why there are none.
func Exact(c Command) ([]string, error) {
	s := read(c)
	if s.unclear != "" {
		return nil, fmt.Errorf("it %s", s.unclear)
	}
	var out []string
	for _, call := range s.plain {
		if p := quotePattern(call); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}

// Default represents the default list in lists.
const Default = "@default"

// defaultAllow are the commands that agents may run where nothing else is said: builds and tests of the project, and what reads it.
var defaultAllow = []string{
	"go {build,test,run,fmt,vet,mod} ...",
	"npm {install,run,test,build} ...",
	"pip {install,list,freeze} ...",
	"git {status,log,diff,branch,checkout} ...",
	"cat ...",
	"ls ...",
	"grep ...",
	"find ...",
	"reconcile {tools,inspect,test,style,deps,preview} ...",
}

// defaultBlock are the commands that are refused where nothing else is said.
var defaultBlock = []string{
	"rm ... {/,//,/.,'/*'} ...",
	"sudo ...",
	"chmod ... {777,0777,a+rwx} ...",
}

// defaultRoles are the lists of roles that only read.
var defaultRoles = map[string][]string{
	"architect": {
		"cat ...", "head ...", "tail ...", "grep ...", "find ... -type {f,d} ...", "ls ...", "wc ...", "diff ...", "tree ...", "file ...",
		"stat ...", "du ...", "pwd", "env", "which ...", "type ...",
	},
	"tester": {
		"cat ...", "head ...", "tail ...", "grep ...", "find ... -type f ...", "ls ...", "wc ...", "diff ...",
		"git {log,diff,status,show} ...", "go test {-list,-list=*} ...", "npm test -- --listTests ...", "pytest --collect-only ...",
		"reconcile {style,deps,preview} ...", "reconcile tools", "reconcile {inspect,test} ... !--fix*",
	},
}

// Lists are the lists of patterns of a tree, as they are declared. Empty lists are the default ones.
type Lists struct {
	Allow, Block []string
	Roles        map[string][]string
}

// For returns the patterns that apply to agents of a role: its own list in place of Allow, if it has one.
func (l *Lists) For(role string) (allow, block []string) {
	allow, standard := l.Allow, defaultAllow
	if own, ok := defaultRoles[role]; ok {
		allow, standard = nil, own
	}
	if own, ok := l.Roles[role]; ok {
		allow = own
	}
	return withDefault(allow, standard), withDefault(l.Block, defaultBlock)
}

// HasRole reports whether agents of a role have a list of their own.
func (l *Lists) HasRole(role string) bool {
	_, standard := defaultRoles[role]
	_, own := l.Roles[role]
	return standard || own
}

// withDefault returns a list with the default one in place of its mark; an empty one is the default.
func withDefault(list, standard []string) []string {
	if len(list) == 0 {
		return standard
	}
	if i := slices.Index(list, Default); i >= 0 {
		return slices.Concat(list[:i], standard, list[i+1:])
	}
	return list
}
