package meter

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that the tests of this package must notice.
var faults = []mutants.Mutant{
	{"any token is that of a run", "proxy.go", "\treturn nil\n}\n\n// The headers", "\tfor _, e := range p.runs {\n\t\treturn e\n\t}\n\treturn nil\n}\n\n// The headers", "TestOnlyTheRunGetsThrough"},
	{"the token of a run that ended is valid", "endpoint.go", "e.proxy.remove(e.token)", "_ = e.token", "TestOnlyTheRunGetsThrough"},
	{"pages in a browser may send requests", "proxy.go", "case !p.fromHere(r):", "case false:", "TestOnlyTheRunGetsThrough"},
	{"a budget is not enforced", "endpoint.go", "if over = e.over(); over != \"\" {", "if over = e.over(); false {", "TestBudgetStops"},
	{"the tokens of a budget are not counted", "endpoint.go", "case b.Tokens > 0 && used >= b.Tokens:", "case b.Tokens > 0 && used < 0:", "TestBudgetStops"},
	{"the price of a budget is not counted", "endpoint.go", "case b.CostUSD > 0 && e.cost >= b.CostUSD:", "case false:", "TestBudgetStops"},
	{"what is being answered is not counted", "endpoint.go", "m.Usage.InputTokens += p.input", "_ = p.input", "TestARunningRequestCounts"},
	{"what was answered counts twice", "endpoint.go", "delete(e.open, x)", "_ = e.open", "TestARunningRequestCounts"},
	{"answers have the key", "pass.go", "h := hider{secret: []byte(e.key)}", "h := hider{}", "TestWhatIsUnknownPasses|TestErrorsOfTheService"},
	{"headers of answers have the key", "pass.go", "values[i] = e.hide(v)", "values[i] = v", "TestKeysAreHiddenInHeaders"},
	{"a key in pieces passes", "hide.go", "if bytes.HasSuffix(b, h.secret[:n]) {", "if false {", "TestKeysAreHiddenInStreams"},
	{"the service gets the token", "pass.go", "\t\tout.Header.Del(name)\n\t\tif len(values)", "\t\tif true || len(values)", "TestWhatIsUnknownPasses"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
