package repotest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// floor is one row of the table of ARCHITECTURE.md. Folders and packages stand for everything below them, too.
type floor struct {
	folder string
	// may lists the folders of this module that the floor may import, beside itself.
	may []string
	// never lists packages that it must not import.
	never []string
	// except lists folders of may that the floor must not import all the same.
	except []string
	// apart means that the packages of the floor must not import each other, but for those in exceptions.
	apart bool
}

var (
	network = []string{"net", "golang.org/x/net", "github.com/go-git"} // but for those in harmless
	inout   = []string{"os", "syscall", "io/ioutil", "path/filepath", "golang.org/x/sys", "log"}
	chance  = []string{"math/rand", "crypto/rand"}
	// harmless are packages of those families that only compute.
	harmless = []string{"net/url", "net/netip", "golang.org/x/sys/cpu"}
)

// floors: the first row whose folder holds a package is the one that it has to keep to.
var floors = []floor{
	{folder: "schemas", never: slices.Concat(network, inout, chance)},
	{folder: "state/mutants"}, // for tests only
	{folder: "state", may: []string{"schemas"}, never: slices.Concat(network, []string{"os/exec"})},
	{folder: "vectors/lexical", may: []string{"schemas"}, never: slices.Concat(network, inout)},
	{folder: "vectors/project", may: []string{"schemas", "state", "vectors"}, never: slices.Concat(network, inout)},
	{folder: "vectors", may: []string{"schemas"}, never: slices.Concat(network, inout)},
	{folder: "controllers", may: []string{"schemas", "state", "vectors/lexical", "vectors/project"}, never: slices.Concat(network, inout, chance)},
	{folder: tools, may: append(core, "cmd/reconcile/internal")},
	{folder: "cmd/reconcile/internal/engine", may: append(core, "cmd/reconcile/internal"),
		except: append(surfaces, "cmd/reconcile/internal/ops", tools), never: flagging},
	{folder: "cmd/reconcile/internal/ops", may: append(core, "cmd/reconcile/internal"), except: append(surfaces, tools), never: flagging},
	{folder: "cmd/reconcile/internal/mcp", may: append(core, "cmd/reconcile/internal/ops")},
	{folder: "cmd/reconcile/internal/web", may: append(core, "cmd/reconcile/internal/ops")},
	{folder: "cmd/reconcile/internal", may: core, apart: true},
	{folder: "cmd/reconcile", may: append(core, "cmd/reconcile/internal"), except: []string{tools}},
}

// tools is the folder of the project's own programs, which no product imports.
const tools = "cmd/reconcile/internal/tools"

// core are the floors 0 to 2. Slices of one length and capacity are copied when they are appended to.
var (
	core     = slices.Clip([]string{"schemas", "state", "vectors", "controllers"})
	surfaces = slices.Clip([]string{"cmd/reconcile/internal/mcp", "cmd/reconcile/internal/web"})
	flagging = []string{"github.com/spf13", "golang.org/x/term", "flag"} // engine and operations have no flags
)

// exceptions lists the imports between packages of floor 3 that are all right, each with its reason.
var exceptions = map[string]string{
	"cmd/reconcile/internal/memstore/storetest -> cmd/reconcile/internal/memstore": "tests what implements its interface",
}

// within reports whether p is dir or below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func withinAny(p string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(p, d) })
}

// broken says why a package in folder must not import the package imported; "" when it may.
func broken(folder, imported string) string {
	i := slices.IndexFunc(floors, func(f floor) bool { return within(folder, f.folder) })
	if i < 0 {
		return "the folder is on no floor of ARCHITECTURE.md"
	}
	f := floors[i]
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	switch {
	case !isOurs && withinAny(imported, f.never) && !slices.Contains(harmless, imported):
		return fmt.Sprintf("%s must not import it", f.folder)
	case !isOurs:
		return ""
	case f.apart && within(ours, f.folder):
		if ours == folder || within(ours, folder) || exceptions[folder+" -> "+ours] != "" {
			return ""
		}
		return fmt.Sprintf("the packages of %s are joined by cmd/reconcile/internal/engine", f.folder)
	case withinAny(ours, f.except):
		return fmt.Sprintf("%s must not import a floor above it", f.folder)
	case within(ours, f.folder) || withinAny(ours, f.may):
		return ""
	}
	return fmt.Sprintf("%s may import only itself and %q", f.folder, f.may)
}

func TestImportsKeepToTheFloors(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			if why := broken(s.folder(), imported); why != "" {
				t.Errorf("%s imports %s: %s", s.path, imported, why)
			}
		}
	}
}

// TestBrokenImportsAreSeen tests the rule itself.
func TestBrokenImportsAreSeen(t *testing.T) {
	for _, c := range []struct {
		folder, imported string
		allowed          bool
	}{
		{"schemas", "strings", true},
		{"schemas", "os", false},
		{"schemas", "net/http", false},
		{"schemas", "net/url", true},
		{"schemas", module + "/state", false},
		{"state/lock", "os", true},
		{"state/lock", module + "/state/durable", true},
		{"state", "os/exec", false},
		{"state", module + "/controllers", false},
		{"vectors/lexical", "os", false},
		{"vectors/lexical", module + "/state", false},
		{"vectors", module + "/state", false},
		{"vectors", "os/exec", false},
		{"vectors", "os", false},
		{"vectors", module + "/vectors/knn", true},
		{"vectors/project", module + "/state", true},
		{"vectors/project", module + "/vectors/graph", true},
		{"vectors/project", "os", false},
		{"vectors/kernel", "golang.org/x/sys/cpu", true},
		{"vectors/source", "go/types", true},
		{"vectors/embed", "net/http", false},
		{"cmd/reconcile/internal/index", module + "/vectors", true},
		{"cmd/reconcile/internal/index", module + "/cmd/reconcile/internal/gitrepo", false},
		{"cmd/reconcile/internal/embedhttp", module + "/vectors/embed", true},
		{"controllers", module + "/vectors/lexical", true},
		{"controllers", module + "/vectors", false},
		{"controllers", module + "/vectors/project", true},
		{"cmd/reconcile/internal/memstore", module + "/vectors/lexical", true},
		{"controllers", module + "/controllers/graph", true},
		{"controllers", module + "/state", true},
		{"controllers/graph", "os", false},
		{"controllers", "math/rand/v2", false},
		{"controllers", module + "/cmd/reconcile/internal/engine/loop", false},
		{"cmd/reconcile/internal/engine/loop", module + "/controllers", true},
		{"cmd/reconcile/internal/engine/loop", module + "/cmd/reconcile/internal/runner", true},
		{"cmd/reconcile/internal/engine/loop", module + "/cmd/reconcile/internal/engine/claims", true},
		{"cmd/reconcile/internal/engine", module + "/cmd/reconcile/internal/ops", false},
		{"cmd/reconcile/internal/engine", "github.com/spf13/cobra", false},
		{"cmd/reconcile/internal/runner", module + "/cmd/reconcile/internal/engine/loop", false},
		{"cmd/reconcile/internal/runner", module + "/cmd/reconcile/internal/runner/deep", true},
		{"cmd/reconcile/internal/ops", module + "/cmd/reconcile/internal/engine", true},
		{"cmd/reconcile/internal/ops", module + "/cmd/reconcile/internal/render", true},
		{"cmd/reconcile/internal/ops", module + "/cmd/reconcile/internal/web", false},
		{"cmd/reconcile/internal/ops", "github.com/spf13/pflag", false},
		{"cmd/reconcile/internal/mcp", module + "/cmd/reconcile/internal/ops", true},
		{"cmd/reconcile/internal/mcp", module + "/cmd/reconcile/internal/gitrepo", false},
		{"cmd/reconcile/internal/gitrepo", module + "/cmd/reconcile/internal/ops", false},
		{"cmd/reconcile", module + "/cmd/reconcile/internal/engine/loop", true},
		{"cmd/reconcile", module + "/cmd/reconcile/internal/tools/bench", false},
		{"cmd/reconcile/internal/engine", module + "/cmd/reconcile/internal/tools/bench", false},
		{"cmd/reconcile/internal/runner", module + "/cmd/reconcile/internal/tools/crashtest", false},
		{"cmd/reconcile/internal/tools/bench", module + "/cmd/reconcile/internal/gitrepo", true},
		{"pkg/new", "strings", false},
	} {
		if why := broken(c.folder, c.imported); (why == "") != c.allowed {
			t.Errorf("%s imports %s: %q, want allowed = %v", c.folder, c.imported, why, c.allowed)
		}
	}
}

// TestReasonsForExceptionsAreUsed keeps the list of exceptions from outliving them.
func TestReasonsForExceptionsAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			used[s.folder()+" -> "+strings.TrimPrefix(imported, module+"/")] = true
		}
	}
	for pair := range exceptions {
		if !used[pair] {
			t.Errorf("exceptions allows %s, which no file needs", pair)
		}
	}
}

// clock are the functions of package time that look at the clock or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// banned returns what a file does that no file of its folder may do, one line each.
func banned(s source) []string {
	var found []string
	add := func(n ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s", s.path, s.line(n), fmt.Sprintf(format, args...)))
	}
	imports := s.imports()
	for _, call := range beforeMain(s.File) {
		if x, ok := call.Fun.(*ast.SelectorExpr); ok {
			if pkg, ok := x.X.(*ast.Ident); ok && slices.Contains(compilers, imports[pkg.Name]) &&
				!within(s.folder(), "cmd/reconcile/internal/tools") {
				add(call, "no schema or pattern is compiled before main, at every start: compile it when it is first needed")
			}
		}
	}
	ast.Inspect(s.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				add(n, "no init functions: what joins packages is plain code")
			}
		case *ast.GoStmt:
			if within(s.folder(), "controllers") {
				add(n, "no goroutines in controllers: decisions are pure")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] == "time" && slices.Contains(clock, n.Sel.Name) &&
				!mayLook(s.folder(), n.Sel.Name) {
				add(n, "no time.%s outside cmd/reconcile: the time is an argument", n.Sel.Name)
			}
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] == "os" && slices.Contains(process, n.Sel.Name) &&
				withinAny(s.folder(), []string{"cmd/reconcile/internal/engine", "cmd/reconcile/internal/ops"}) {
				add(n, "no os.%s in the engine and in operations: streams and exit codes are those of a surface", n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// compilers are the packages that compile JSON Schemas, which takes milliseconds, and patterns, which are many.
var compilers = []string{"regexp", "github.com/santhosh-tekuri/jsonschema/v5", module + "/schemas/validator"}

// beforeMain returns the calls that initialize the package variables of a file.
func beforeMain(f *ast.File) (calls []*ast.CallExpr) {
	for _, d := range f.Decls {
		if _, ok := d.(*ast.GenDecl); !ok {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				calls = append(calls, call)
			}
			_, later := n.(*ast.FuncLit)
			return !later
		})
	}
	return calls
}

// process are the names of package os that belong to surfaces.
var process = []string{"Stdin", "Stdout", "Stderr", "Exit", "Args"}

// onClock lists what folders outside cmd/reconcile may use of the clock, with the reason.
var onClock = []struct {
	folder, function, why string
}{
	{"state", "After", "a fingerprint must be older than a tick of the file system's clock; Settle waits for that"},
	{"state/lock", "Now", "the protocol prescribes ages; an option, of which the clock is the default"},
	{"state/lock", "AfterFunc", "a lock that is held is renewed; an option, of which the clock is the default"},
	{"state/lock", "NewTimer", "the protocol prescribes waiting; an option, of which the clock is the default"},
	{"state/lock", "AfterFunc", "the protocol prescribes signs of life; an option, of which the clock is the default"},
	{"state/durable", "Since", "what a dead writer left behind is told by its age, as the file system has it"},
}

func mayLook(folder, function string) bool {
	if within(folder, "cmd/reconcile") {
		return true
	}
	for _, o := range onClock {
		if o.folder == folder && o.function == function {
			return true
		}
	}
	return false
}

func TestNothingBannedIsDone(t *testing.T) {
	for _, s := range sources(t) {
		for _, line := range banned(s) {
			t.Error(line)
		}
	}
}

// TestBannedThingsAreSeen tests the rule itself.
func TestBannedThingsAreSeen(t *testing.T) {
	const text = `package p
import ("time"; clock "time"; "reconcile.dev/reconcile/schemas/validator")
func init() {}
var now, later = validator.Compile(nil, nil), func() { validator.Compile(nil, nil) }
func f() { go f(); _ = time.Now(); clock.Sleep(1); _ = time.Second }
`
	for folder, want := range map[string][]string{
		"controllers":   {":4: no schema", ":3: no init", ":5: no goroutines", ":5: no time.Now", ":5: no time.Sleep"},
		"state":         {":4: no schema", ":3: no init", ":5: no time.Now", ":5: no time.Sleep"},
		"state/lock":    {":4: no schema", ":3: no init", ":5: no time.Sleep"},
		"cmd/reconcile": {":4: no schema", ":3: no init"},
	} {
		s, err := parse(folder+"/p.go", "p.go", text)
		if err != nil {
			t.Fatal(err)
		}
		got := banned(s)
		if len(got) != len(want) {
			t.Errorf("%s: %q, want %q", folder, got, want)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", folder, got[i], want[i])
			}
		}
	}
}
