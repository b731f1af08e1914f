package commands

import "slices"

// Default stands in lists for the default list.
const Default = "@default"

// DefaultAllow are the commands that agents may run where nothing else is said: builds and tests of the project, and what reads it.
var DefaultAllow = []string{
	"go {build,test,run,fmt,vet,mod} ...",
	"npm {install,run,test,build} ...",
	"pip {install,list,freeze} ...",
	"git {status,log,diff,branch,checkout} ...",
	"cat ...",
	"ls ...",
	"grep ...",
	"find ...",
}

// DefaultBlock are the commands that are refused where nothing else is said.
var DefaultBlock = []string{
	"rm ... {/,//,/.,'/*'} ...",
	"sudo ...",
	"chmod ... {777,0777,a+rwx} ...",
}

// DefaultRoles are the lists of roles that only read.
var DefaultRoles = map[string][]string{
	"architect": {
		"cat ...", "head ...", "tail ...", "grep ...", "find ... -type {f,d} ...", "ls ...", "wc ...", "diff ...", "tree ...", "file ...",
		"stat ...", "du ...", "pwd", "env", "which ...", "type ...",
	},
	"tester": {
		"cat ...", "head ...", "tail ...", "grep ...", "find ... -type f ...", "ls ...", "wc ...", "diff ...",
		"git {log,diff,status,show} ...", "go test {-list,-list=*} ...", "npm test -- --listTests ...", "pytest --collect-only ...",
	},
}

// Lists are the lists of patterns of a tree, as they are declared. Empty lists are the default ones.
type Lists struct {
	Allow, Block []string
	Roles        map[string][]string
}

// For returns the patterns that apply to agents of a role: its own list in place of Allow, if it has one.
func (l *Lists) For(role string) (allow, block []string) {
	allow, standard := l.Allow, DefaultAllow
	if own, ok := DefaultRoles[role]; ok {
		allow, standard = nil, own
	}
	if own, ok := l.Roles[role]; ok {
		allow = own
	}
	return withDefault(allow, standard), withDefault(l.Block, DefaultBlock)
}

// HasRole reports whether agents of a role have a list of their own.
func (l *Lists) HasRole(role string) bool {
	_, standard := DefaultRoles[role]
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
