package repotest

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// harmlessCallbacks are the names of fields with functions that hand in no logic of a higher floor: clocks, chance, the
// environment, and reports of what happens.
var harmlessCallbacks = []string{"Now", "FileNow", "Sleep", "After", "Rand", "Getenv", "Warn", "Progress", "Doing", "Dry"}

// callbackReasons are the other fields with functions below the engine, each with its reason.
var callbackReasons = map[string]string{
	"state.Options.Large":           "prepares the process for a large tree; the store knows nothing of the process",
	"gitrepo.Owners.Of":             "the rules of ownership, one value for all of Adopt",
	"gitrepo.Owners.Lock":           "is a method of the store",
	"gitrepo.Owners.Join":           "the rules of ownership, one value for all of Adopt",
	"runner.Options.Redact":         "is a function of floor 0",
	"runner.Options.Durable":        "is a method of the store",
	"runner.PermissionRequest.Wait": "stops the clock of the turn that asks",
	"meter.Request.Changed":         "reports that more was used",
	"chat.Files.Clean":              "is a method of the runner",
	"index.Keeper.Long":             "prepares the process for long work; the index knows nothing of the process",
	"index.Kept.Finish":             "the index gives it to its caller",
	"watch.Options.Skip":            "git's rules, from another effect",
	"events.SubscribeOptions.Wants": "selects events",
	"answer.Index.Stated":           "asks another effect for its rows",
	"answer.Snippets.Read":          "reads a file; vectors do no I/O",
	"project.Projector.Build":       "the row of a kind, which is data",
	"vectors.Options.Forget":        "gives back the memory of files that vectors do not open",
}

// funcFields lists the exported fields with functions of the exported structs of a file, as package.Type.Field.
func funcFields(f *ast.File) (out []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		t, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		st, ok := t.Type.(*ast.StructType)
		if !ok || !t.Name.IsExported() {
			return false
		}
		for _, field := range st.Fields.List {
			if _, ok := field.Type.(*ast.FuncType); !ok {
				continue
			}
			for _, name := range field.Names {
				if name.IsExported() {
					out = append(out, f.Name.Name+"."+t.Name.Name+"."+name.Name)
				}
			}
		}
		return false
	})
	return out
}

// belowEngine are the floors 1 and 3.
func belowEngine(folder string) bool {
	above := []string{"cmd/reconcile/internal/engine", opsFolder, tools, "cmd/reconcile/internal/repotest", "cmd/reconcile/internal/memstore/storetest"}
	return withinAny(folder, []string{"state", "vectors"}) ||
		within(folder, "cmd/reconcile/internal") && !withinAny(folder, append(above, surfaces...))
}

// TestRulesNoCallsUp: a lower floor gets data from a higher one, or an interface that is declared once, and no function.
func TestRulesNoCallsUp(t *testing.T) {
	unused := maps.Clone(callbackReasons)
	for _, s := range sources(t) {
		if !belowEngine(s.folder()) {
			continue
		}
		for _, name := range funcFields(s.File) {
			delete(unused, name)
			if !slices.Contains(harmlessCallbacks, name[strings.LastIndexByte(name, '.')+1:]) && callbackReasons[name] == "" {
				t.Errorf("%s: %s takes a function; take data, or declare an interface", s.path, name)
			}
		}
	}
	for name := range unused {
		t.Errorf("%s does not exist any more; remove its reason", name)
	}
}
