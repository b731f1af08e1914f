package commands

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

var faults = []mutants.Mutant{
	{"a list of prefixes", "pattern.go", "	return at[n]\n", "	for i := range at {\n		if at[i] {\n			return true\n		}\n	}\n	return false\n", "TestCorpus"},
	{"block after allow", "commands.go", "	s := read(c)\n	for _, call", "	s := read(c)\n	if s.unclear == \"\" && len(s.plain) == 1 && slices.ContainsFunc(r.allow, func(p *pattern) bool { return p.allows(s.plain[0]) }) {\n		return Verdict{Decision: Allow}\n	}\n	for _, call", "TestBlockWins"},
	{"the first command decides", "commands.go", "range s.plain {\n		if !slices", "range s.plain[:1] {\n		if !slices", "TestCorpus"},
	{"expansions are literal", "read.go", "		if !w.plain {\n", "		if false {\n", "TestCorpus"},
	{"redirections are nothing", "read.go", "		s.redirect(r)\n", "		_ = r\n", "TestCorpus"},
	{"wildcards match options that run programs", "pattern.go", "!program && !isDangerous(arg, list)", "!program && (true || isDangerous(arg, list))", "TestCorpus"},
	{"only the program itself is blocked", "read.go", "	s.hidden(c, depth)\n", "", "TestCorpus"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
