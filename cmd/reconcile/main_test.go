package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp/acptest"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/agenttest"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/buildcache"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/modeltest"
)

var update = flag.Bool("update", false, "rewrite what scripts compare with")

func TestMain(m *testing.M) {
	sandbox.Main(os.Args)
	runner.Main(os.Args)
	// Most tests wait for programs that wait for a disk, each other or a time limit. The command line may say otherwise.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"reconcile":     func() { os.Exit(mainRun()) },
		"metered-agent": func() { os.Exit(modeltest.Main(os.Args[1:], os.Getenv, os.Environ(), os.Stdout)) },
		"acp-agent":     func() { os.Exit(acptest.Main(os.Args[1:], os.Stdin, os.Stdout)) },
	})
}

// TestScripts runs every script of testdata/script. A script starts in an empty folder beside a copy of testdata/tree,
// a tree with an object of each kind and some statuses, at $TREE; the project's examples are at $EXAMPLES, a tree
// that an earlier version wrote at $EARLIER, and go's cache at $BUILDCACHE. git has a user and no settings of the machine's.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup:               setup,
		Condition:           condition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exitcode": exitcode, "hooks": hooks, "models": models, "team-models": teamModels, "writer-models": writerModels, "health-models": healthModels,
			"fill-build-cache": fillBuildCache,
		},
	})
}

// condition decides conditions of scripts: [sandbox:LEVEL] is true where that level is available, [sandbox:network] where connections
// can be limited, [agents] where real coding
// agents are asked for.
func condition(name string) (bool, error) {
	if name == "agents" {
		return os.Getenv(agenttest.Wanted) != "", nil
	}
	level, ok := strings.CutPrefix(name, "sandbox:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	host := sandbox.NewHost(os.Getenv("PATH"))
	if level == "network" {
		return host.Best().Network, nil
	}
	return host.Support(level).Missing == "", nil
}

func setup(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, ".home")
	tree := filepath.Join(env.WorkDir, "tree")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	config := "[user]\n\tname = Ada\n\temail = ada@example.com\n" +
		"[init]\n\tdefaultBranch = main\n[commit]\n\tgpgSign = false\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		return err
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		return err
	}
	earlier, err := filepath.Abs(filepath.Join("testdata", "earlier"))
	if err != nil {
		return err
	}
	env.Vars = append(env.Vars, "HOME="+home, "TREE="+tree, "EXAMPLES="+examples, "EARLIER="+earlier, "USER=ada",
		"NO_COLOR=1", "GIT_CONFIG_NOSYSTEM=1", "BUILDCACHE="+buildCache(), "AGENTS="+os.Getenv(agenttest.Wanted))
	env.Values[modelsKey{}] = new(*modeltest.Server)
	return os.CopyFS(tree, os.DirFS(filepath.Join("testdata", "tree")))
}

// buildCache is where this machine keeps what go has built: in an empty one, go builds its whole library.
func buildCache() string {
	user, _ := os.UserCacheDir() // without one go has no cache either
	return cmp.Or(os.Getenv("GOCACHE"), filepath.Join(user, "go-build"))
}

// fillBuildCache makes a folder a cache of go with the standard library.
func fillBuildCache(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fill-build-cache FOLDER")
	}
	ts.Check(buildcache.Fill(ts.MkAbs(args[0])))
}

// exitcode runs a program that must end with a given exit code: exitcode 3 reconcile validate.
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE PROGRAM [ARGUMENT…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("%s ended with %s, not with exit code %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// models starts a service of models that plays the answers in a file, a JSON list, and sets $MODELS to its address.
func models(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: models FILE")
	}
	var answers []modeltest.Answer
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &answers); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	s, end := modeltest.Start(answers...)
	ts.Defer(end)
	ts.Setenv("MODELS", s.URL)
}

// teamModels starts a service of models that leads real coding agents through examples/team, and sets $MODELS to its address.
// "team-models waits N" waits until N of its answers wait for ever.
func teamModels(ts *testscript.TestScript, neg bool, args []string) {
	switch {
	case neg || len(args) != 0 && (len(args) != 2 || args[0] != "waits"):
		ts.Fatalf("usage: team-models [waits N]")
	case len(args) == 0:
		decideModels(ts, modeltest.Team())
		return
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	s := *ts.Value(modelsKey{}).(**modeltest.Server)
	late := time.After(2 * time.Minute)
	for range n {
		select {
		case <-s.Waiting():
		case <-late:
			ts.Fatalf("fewer than %d answers wait after two minutes", n)
		}
	}
}

// modelsKey is the key of the service of models among the values of a script.
type modelsKey struct{}

// writerModels starts a service of models that has any coding agent write the file of its task, and sets $MODELS to its address.
func writerModels(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: writer-models")
	}
	decideModels(ts, modeltest.Writer())
}

// healthModels starts a service of models that leads real coding agents through examples/health-endpoint, and sets $MODELS to its address.
func healthModels(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: health-models")
	}
	decideModels(ts, modeltest.Health())
}

// decideModels starts a service of models, and sets $MODELS to its address.
func decideModels(ts *testscript.TestScript, decide func(string) modeltest.Answer) {
	s, end := modeltest.StartDeciding(decide)
	ts.Defer(end)
	*ts.Value(modelsKey{}).(**modeltest.Server) = s
	ts.Setenv("MODELS", s.URL)
}
