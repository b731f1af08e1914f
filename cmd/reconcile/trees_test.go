package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// agentHead is put in front of every agent: each start leaves its key in ../effects.
const agentHead = "echo \"$RECONCILE_RUN\" >> \"$RECONCILE_ROOT/../effects\"\n"

// askTree has an agent that asks, a program and a person who answer.
var askTree = map[string]string{
	"agents/architect.sh": agentHead + "case $(cat) in *pooling*) echo 'Config-driven, per environment.' ;;" +
		" *) echo 'Repository pattern with an adapter.' ;; esac\n",
	"specs/agents/architect.yaml": agentSpec("architect", "runner: {command: {argv: [sh, agents/architect.sh]}}"),
	"specs/agents/lead.yaml":      agentSpec("lead", "runner: {human: {}}"),
	"specs/agents/engineer.yaml":  agentSpec("engineer", "canClarify: [architect, lead], runner: {human: {}}"),
}

func agentSpec(name, spec string) string {
	return fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}

func askArgs(to, topic, question string) []string {
	return []string{"clarify", "ask", "--issue", "42", "--from", "engineer", "--to", to,
		"--topic", topic, "--question", question}
}

var (
	askedArchitect = [][]string{askArgs("architect", "Database", "Dual layer or migrate?")}
	askedLead      = [][]string{askedArchitect[0], askArgs("lead", "Budget", "How large is it?")}
)

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// recordedKeys are the keys of the runs that are on record as files.
func recordedKeys(root string) []string {
	var keys []string
	dir := filepath.Join(root, "state/runs")
	_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		var run schemas.Run
		data, _ := os.ReadFile(p)
		if err == nil && bytes.HasPrefix(data, []byte("{")) && json.Unmarshal(data, &run) == nil {
			keys = append(keys, run.Key)
		}
		return nil
	})
	return keys
}

// inMemory is a folder that needs no disk where there is such a place: thousands of files come and go.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "crash")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// self is the test binary under the name by which it acts as reconcile (see testscript.Main).
func self(t *testing.T) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "reconcile")
	if os.Link(exe, bin) == nil { // a program that starts itself again finds that name, too
		return bin
	}
	data, err := os.ReadFile(exe)
	if err = errors.Join(err, os.WriteFile(bin, data, 0o755)); err != nil {
		t.Fatal(err)
	}
	return bin
}

// effects counts the lines that the nodes have left behind.
func effects(root string) map[string]int {
	data, _ := os.ReadFile(filepath.Join(root, "../effects"))
	counts := map[string]int{}
	for line := range bytes.FieldsSeq(data) {
		counts[string(line)]++
	}
	return counts
}

// folderFiles are the files of a folder by their paths in it; head is put in front of its agents.
func folderFiles(t *testing.T, dir, head string) map[string]string {
	out, tree := map[string]string{}, os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if out[name] = string(data); strings.HasPrefix(name, "agents/") {
			out[name] = head + out[name]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
