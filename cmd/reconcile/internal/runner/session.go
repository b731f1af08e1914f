package runner

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// The id of an agent's session is durable before the agent gets its prompt, or as soon as a command names it, so that a run
// that was killed or interrupted continues its session. It is a file of the effect, local to this tree.

// savedFile is such a file. A session continues only in the same folder, with the same program.
type savedFile struct {
	Key     string   `json:"key"`     // of the run
	Session string   `json:"session"` // "": the agent has lost it, and the next run begins a new one
	Dir     string   `json:"dir"`
	Argv    []string `json:"argv"`
}

const (
	sessionSuffix = ".session.json"
	// sessionsKept is the number of ended runs whose files are kept: their records may not be durable yet.
	sessionsKept = 64
	// sessionAge is the age from which a file of a run that never continued is removed.
	sessionAge = 30 * 24 * time.Hour
)

func sessionPath(key string) string { return path.Join(state.WorkDir, flat(key)+sessionSuffix) }

// saveSession makes the session of a run durable.
func (r *Runner) saveSession(a *attempt, id string) error {
	data, err := json.Marshal(savedFile{a.job.effect.Key, id, a.command.dir, a.task.Argv})
	if err != nil {
		return err
	}
	return durable.WriteFile(r.root, state.WorkDir, sessionPath(a.job.effect.Key), data)
}

// savedSession returns the session of an earlier run of the effect that was interrupted, "" if the agent has lost it; ok is false without
// such a run.
func (r *Runner) savedSession(a *attempt) (id string, ok bool) {
	data, err := regular.Read(r.root, sessionPath(a.job.effect.Key))
	if err != nil {
		return "", false
	}
	var s savedFile
	if json.Unmarshal(data, &s) != nil || s.Dir != a.command.dir || strings.Join(s.Argv, "\x00") != strings.Join(a.task.Argv, "\x00") {
		return "", false
	}
	return s.Session, true
}

// setArguments sets the command's arguments, which continue the session of an interrupted run of the effect, else that of the turn which the
// task names, if there is one, and puts the prompt in its place among them.
func (a *attempt) setArguments() {
	argv, prompt := a.task.Argv, a.task.PromptArg
	if c := a.task.Continue; c != nil && a.talk == nil {
		id, interrupted := a.runner.savedSession(a)
		if b := a.task.Resumes; b != nil && (!interrupted || id == b.SessionID) {
			id, a.resumes = b.SessionID, b
		}
		if id != "" {
			a.continued, argv, prompt = true, slices.Clone(c.Argv), c.PromptArg
			for i, arg := range argv {
				argv[i] = strings.ReplaceAll(arg, schemas.ArgValue, id)
			}
		}
		if id != "" && interrupted {
			a.command.stdin = resumedPrompt + a.command.stdin
		}
	}
	argv, prompt = a.confinedArguments(argv, prompt)
	if prompt > 0 {
		argv = slices.Clone(argv)
		argv[prompt], a.command.stdin = a.command.stdin, ""
	}
	a.command.argv = argv
}

// confinedArguments replaces the argument that represents those of a confined program, and returns the new place of the prompt.
func (a *attempt) confinedArguments(argv []string, prompt int) ([]string, int) {
	at := slices.Index(argv, schemas.ArgConfined)
	if at < 0 {
		return argv, prompt
	}
	var args []string
	if a.policy != nil {
		port := cmp.Or(lookup(a.command.env, "RECONCILE_PORT_BASE"), "0")
		for _, arg := range a.task.Sandbox.Confined.Args {
			args = append(args, strings.ReplaceAll(arg, schemas.ArgPort, port))
		}
	}
	if prompt > at {
		prompt += len(args) - 1
	}
	return slices.Replace(slices.Clone(argv), at, at+1, args...), prompt
}

// sessionWriter passes the output of an agent on to its reader, and makes the session durable as soon as the agent names it.
type sessionWriter struct {
	a     *attempt
	saved bool
}

func (w *sessionWriter) Write(b []byte) (int, error) {
	n, err := w.a.reader.Write(b)
	if id := w.a.reader.Session(); id != "" && !w.saved && w.a.task.Continue != nil {
		w.saved = true
		_ = w.a.runner.saveSession(w.a, id) // without it the next run begins a new session
	}
	return n, err
}

// lostSession reports whether a turn that was to continue a session failed since the agent does not have it any more, as on another machine.
// Then the run is given up without a record, and the next one begins a new session.
func (a *attempt) lostSession() bool {
	t := a.record.Turn
	if !a.continued || t == nil || t.Failure == nil || t.Usage != nil && t.Usage.OutputTokens > 0 {
		return false
	}
	return t.Failure.Class == schemas.FailureUnknown || t.Failure.Class == schemas.FailureRequest
}

// forgetSession marks the file of an ended run, and removes the oldest marked one; r.mu is held.
func (r *Runner) forgetSession(key string) {
	if r.resumable = append(r.resumable, key); len(r.resumable) > sessionsKept {
		_ = removeIfThere(r.root, sessionPath(r.resumable[0])) // otherwise it is removed when it is old
		r.resumable = r.resumable[1:]
	}
}

// removeSessions removes the files of ended runs, also of those that a killed process ran, and old ones.
func (r *Runner) removeSessions() (err error) {
	for _, key := range r.resumable {
		err = errors.Join(err, removeIfThere(r.root, sessionPath(key)))
	}
	files, listErr := regular.List(r.root, state.WorkDir)
	if errors.Is(listErr, fs.ErrNotExist) || errors.Is(listErr, syscall.ENOTDIR) {
		return err
	}
	for _, f := range files {
		name := path.Join(state.WorkDir, f.Name())
		if strings.HasSuffix(f.Name(), sessionSuffix) && (r.isRecorded(name) || r.isOld(f)) {
			err = errors.Join(err, removeIfThere(r.root, name))
		}
	}
	return errors.Join(err, listErr)
}

// isRecorded reports whether the run of a session file has a record: then no run continues it.
func (r *Runner) isRecorded(name string) bool {
	data, err := regular.Read(r.root, name)
	var s savedFile
	if err != nil || json.Unmarshal(data, &s) != nil || checkKey(s.Key) != nil {
		return false
	}
	_, err = r.root.Lstat(path.Join(cmp.Or(r.o.State, "state"), "runs", s.Key+".json"))
	return err == nil
}

func (r *Runner) isOld(f fs.DirEntry) bool {
	info, err := f.Info()
	return err == nil && r.o.Now().Sub(info.ModTime()) > sessionAge
}
