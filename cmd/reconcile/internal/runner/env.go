package runner

import (
	"encoding/json"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state"
)

const (
	maxNeedEnv  = 4 << 10  // the maximum size of a needed node's result in the environment
	maxNeedsEnv = 64 << 10 // and all of them together
)

// inherited names the variables that a command inherits; Windows programs need the others.
func inherited() []string {
	names := []string{"PATH", "HOME", "LANG"}
	if runtime.GOOS == "windows" {
		names = append(names, "SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE")
	}
	return names
}

// baseEnv returns the environment that every command starts from.
func baseEnv(environ []string) []string {
	var env []string
	for _, name := range inherited() {
		v := lookup(environ, name)
		if v == "" && name == "PATH" && runtime.GOOS != "windows" {
			v = "/usr/local/bin:/usr/bin:/bin"
		}
		if v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// environment returns the environment of the command of a: see the package comment.
func (a *attempt) environment() []string {
	env := make([]string, len(a.runner.base), len(a.runner.base)+len(a.task.Env)+len(a.task.Needs)+6)
	copy(env, a.runner.base)
	for _, name := range a.task.PassEnv {
		if v := lookup(a.runner.o.Environ, name); v != "" {
			env = set(env, name+"="+v)
		}
	}
	for _, kv := range a.task.Env {
		env = set(env, kv)
	}
	for _, kv := range a.read {
		env = set(env, kv)
	}
	env = append(env, needsEnv(a.task.Needs)...)
	if len(a.task.Needs) > 0 {
		env = set(env, "RECONCILE_NEEDS="+a.runner.absolute(path.Join(state.WorkDir, needsName(a.job.effect.Key))))
	}
	if a.task.Session != "" {
		env = set(env, "RECONCILE_SESSION_CONTEXT="+a.task.Session)
	}
	if a.memory != "" {
		env = set(env, "RECONCILE_MEMORY="+a.runner.absolute(path.Join(state.WorkDir, memoryName(a.job.effect.Key))))
	}
	if a.task.OutputJSON != "" {
		env = set(env, "RECONCILE_RESULT="+a.place.absolute(a.task.OutputJSON))
	}
	for _, kv := range a.place.env() {
		env = set(env, kv)
	}
	env = set(env, "RECONCILE_RUN="+a.job.effect.Key)
	env = set(env, "RECONCILE_ROOT="+a.runner.dir)
	if a.token != "" {
		env = set(env, tokenVar+"="+a.token)
	}
	return set(env, chainVar+"="+a.runner.marks.chain(a.job.effect.Key))
}

// set replaces the variable that kv names, or adds it.
func set(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	for i, old := range env {
		if len(old) > len(name) && old[len(name)] == '=' && old[:len(name)] == name {
			env[i] = kv
			return env
		}
	}
	return append(env, kv)
}

// needsEnv returns variables with the results and the files that fit: results that are strings as they are, other values as JSON;
// files one on a line.
func needsEnv(needs map[string]settle.Need) []string {
	var env []string
	room := maxNeedsEnv
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		add := func(what, v string, ok bool) {
			if ok && len(v) <= room {
				room -= len(v)
				env = append(env, "RECONCILE_NEED_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+what+"="+v)
			}
		}
		v, ok := resultText(needs[name].Result)
		add("_RESULT", v, ok)
		files := strings.Join(needs[name].Files, "\n")
		add("_FILES", files, files != "" && len(files) <= maxNeedEnv)
	}
	return env
}

// resultText returns a result as a variable's value; ok is false for no result, and for one that does not fit. A result
// from a status is JSON text, so that only its encoding tells whether it is a string.
func resultText(v any) (text string, ok bool) {
	if v == nil {
		return "", false
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "", false
	}
	if text = string(b); b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return "", false
		}
	}
	return text, len(text) <= maxNeedEnv && !strings.Contains(text, "\x00")
}

func needsName(key string) string { return flat(key) + ".needs.json" }

// writeNeeds writes the file that RECONCILE_NEEDS names.
func (a *attempt) writeNeeds() error {
	if len(a.task.Needs) == 0 {
		return nil
	}
	b, err := json.Marshal(a.task.Needs)
	if err != nil {
		return err
	}
	return a.writeWork(needsName(a.job.effect.Key), b)
}

// lookup returns the value of a variable in an environment; "" if it is not set.
func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}
