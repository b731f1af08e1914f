package runner

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

const (
	maxNeedEnv  = 4 << 10  // the longest result of a needed node that goes into the environment
	maxNeedsEnv = 64 << 10 // and all of them together
)

// inherited names what a command gets of our own environment; Windows programs do not start without the rest.
func inherited() []string {
	names := []string{"PATH", "HOME", "LANG"}
	if runtime.GOOS == "windows" {
		names = append(names, "SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE")
	}
	return names
}

// baseEnv is the environment that every command starts from.
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

// environment is what the command of a gets: see the package comment.
func (a *attempt) environment() []string {
	env := make([]string, len(a.base), len(a.base)+len(a.task.Env)+len(a.task.Needs)+6)
	copy(env, a.base)
	for _, kv := range a.task.Env {
		env = set(env, kv)
	}
	env = append(env, needsEnv(a.task.Needs)...)
	if len(a.task.Needs) > 0 {
		env = set(env, "RECONCILE_NEEDS="+a.absolute(path.Join(state.WorkDir, needsName(a.effect.Key))))
	}
	if a.memory != "" {
		env = set(env, "RECONCILE_MEMORY="+a.absolute(path.Join(state.WorkDir, memoryName(a.effect.Key))))
	}
	if a.task.OutputJSON != "" {
		env = set(env, "RECONCILE_RESULT="+a.absolute(a.task.OutputJSON))
	}
	env = set(env, "RECONCILE_RUN="+a.effect.Key)
	env = set(env, "RECONCILE_ROOT="+a.dir)
	return set(env, chainVar+"="+a.marks.chain(a.effect.Key))
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

// needsEnv hands on the results that fit: strings as they are, other values as JSON.
func needsEnv(needs map[string]controllers.Need) []string {
	var env []string
	room := maxNeedsEnv
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		v, ok := resultText(needs[name].Result)
		if !ok || len(v) > room {
			continue
		}
		room -= len(v)
		env = append(env, "RECONCILE_NEED_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"_RESULT="+v)
	}
	return env
}

// resultText is a result as a variable holds it; ok is false for none, and for one that does not fit. A result that was
// read from a status is JSON text, so that only its encoding tells whether it is a string.
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
	return a.writeWork(needsName(a.effect.Key), b)
}

// writeWork writes a file that a run is given.
func (a *attempt) writeWork(name string, data []byte) error {
	f, err := a.files.write(name, data)
	if err == nil {
		a.work = append(a.work, f)
	}
	return err
}

// removeWorkOf removes the files that the run with that key was given.
func (r *Runner) removeWorkOf(key string) (err error) {
	for _, name := range []string{needsName(key), memoryName(key)} {
		err = errors.Join(err, removeIfThere(r.root, path.Join(state.WorkDir, name)))
	}
	return err
}

func removeIfThere(root *os.Root, p string) error {
	err := root.Remove(p)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

func (a *attempt) removeWork() {
	for _, f := range a.work {
		if a.files.release(f) != nil {
			a.leave(a.effect.Key)
		}
	}
	a.work = nil
}

// leave remembers a file of a key that could not be removed now; Close tries again.
func (r *Runner) leave(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.litter = append(r.litter, key)
}

func (r *Runner) removeLitter() error {
	err := r.files.close()
	for _, key := range r.litter {
		err = errors.Join(err, r.removeWorkOf(key))
	}
	return err
}

// absolute is the path of a slash path below the root, for a command to use.
func (r *Runner) absolute(p string) string { return filepath.Join(r.dir, filepath.FromSlash(p)) }
