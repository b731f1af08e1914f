package doctor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
)

// The test binary is also the other process of tests, when this variable says which.
const roleVar = "DOCTOR_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role, arg string) error {
	switch role {
	case "hold":
		return Hold(arg, os.Stdin, os.Stdout)
	case "pretend": // says that it has the lock, and has not
		fmt.Println(held)
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "victim":
		return victim(arg)
	case "fix":
		return json.NewEncoder(os.Stdout).Encode(Fix(context.Background(), env(arg)))
	}
	return fmt.Errorf("no role is called %q", role)
}

// env is a healthy surrounding for the tree in dir.
func env(dir string) Patient {
	return Patient{
		Dir: dir, Now: time.Now, Program: "reconcile test",
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Git: func(ctx context.Context, dir string, environ []string, args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "git", args...)
			cmd.Dir, cmd.Env = dir, slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
			return cmd
		},
		Open: func(noCache bool) (*state.Store, error) {
			return state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, Agent: "test", Build: "test", NoCache: noCache})
		},
		Reap: func(context.Context, []state.Orphan) error { return nil },
	}
}

const victimKey = "dags/checks/build-0123456789abcdef-1"

// victim does what a run does, says so, and waits to be killed: it has a lock, a result and a claim without one in its
// journal, and a temporary file.
func victim(dir string) error {
	store, err := env(dir).Open(true)
	if err != nil {
		return err
	}
	j, err := store.Journal()
	if err != nil {
		return err
	}
	run := func(key string) schemas.Run {
		return schemas.Run{Key: key, Owner: "dag/checks", Node: "build", NodeKey: "0123456789abcdef", Seq: 1}
	}
	done, open := run(victimKey), run(strings.TrimSuffix(victimKey, "1")+"2")
	if err := j.Claim([]schemas.Run{done, open}); err != nil {
		return err
	}
	now := schemas.Time{Time: time.Now()}
	done.Outcome, done.StartedAt, done.FinishedAt = schemas.OutcomeSucceeded, now, now
	if err := j.Finish([]schemas.Run{done}); err != nil {
		return err
	}
	if _, err := durable.Stage(store.Root(), tempFolder, "state/agent-status.json", []byte("{}")); err != nil {
		return err
	}
	if _, err := lock.Acquire(context.Background(), store.Root(), "state/agent-status.json", lock.Options{}); err != nil {
		return err
	}
	fmt.Println(held)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// murder lets a victim get to work on the tree in dir, and kills it.
func murder(dir string) error {
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleVar+"=victim")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if killErr := cmd.Process.Kill(); err == nil {
		err = killErr
	}
	_ = cmd.Wait() // it was killed
	if line != held+"\n" {
		return fmt.Errorf("the victim said %q: %v", line, err)
	}
	return age(filepath.Join(dir, filepath.FromSlash(tempFolder)))
}

// age makes every file in a folder an hour older.
func age(folder string) error {
	files, err := os.ReadDir(folder)
	old := time.Now().Add(-time.Hour)
	for _, f := range files {
		if err := os.Chtimes(filepath.Join(folder, f.Name()), old, old); err != nil {
			return err
		}
	}
	return err
}

// files are a small tree without faults.
var files = map[string]string{
	"specs/sessions/health.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: health}\nspec: {title: Health}\n",
	"specs/dags/checks.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: checks}\n" +
		"spec: {session: health, nodes: [{name: build, run: [\"true\"]}]}\n",
	".gitignore": ".reconcile/\n*.lock\n",
}

func plant(dir string) error {
	for name, text := range files {
		if err := put(dir, name, text); err != nil {
			return err
		}
	}
	return nil
}

func put(dir, name, text string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// newTree makes a healthy tree in a git repository.
func newTree(t *testing.T) (string, Patient) {
	t.Helper()
	dir := t.TempDir()
	must(t, plant(dir))
	e := env(dir)
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"config", "user.name", "Test"}, {"config", "user.email", "test@example.org"},
		{"add", "."}, {"commit", "-q", "-m", "Plant"},
	} {
		if out, err := e.git(t.Context(), args...); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	e.Hold = hold(t, "hold")
	return dir, e
}

// hold is the command line of the other process of the lock test.
func hold(t *testing.T, role string) []string {
	t.Helper()
	return []string{"env", roleVar + "=" + role, os.Args[0]}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
