package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/regular"
)

const (
	artifactLimit  = 64 << 10  // maximum bytes of one file shown to an agent
	artifactsLimit = 256 << 10 // and of all files
)

// stdin returns the command's input: the agent's instructions, the task's text, its artifacts in their present state, and the
// memory. An error means that the instructions cannot be read.
func (a *attempt) stdin() (string, error) {
	if a.task.StdinFormat == agentio.FormatNone {
		return a.task.Stdin, nil
	}
	rules, err := a.instructions()
	if err != nil {
		return "", err
	}
	text := agentio.Attach(a.task.StdinFormat, a.task.Stdin, a.artifacts())
	if a.task.Review == nil {
		text = agentio.Changed(a.task.StdinFormat, text, a.changes())
	} else if text, err = a.reviewed(text); err != nil {
		return "", err
	}
	text = agentio.Instruct(a.task.StdinFormat, text, rules)
	return agentio.Remind(a.task.StdinFormat, text, a.memory), nil
}

// instructions reads the file with the agent's instructions, if there is one.
func (a *attempt) instructions() (string, error) {
	if a.task.InstructionsFile == "" {
		return "", nil
	}
	f := a.showArtifact(a.task.InstructionsFile, artifactLimit)
	if f.Note != "" {
		return "", fmt.Errorf("the agent's instructions in %s: %s; they are text in UTF-8 of at most %d KiB", f.Path, f.Note, artifactLimit>>10)
	}
	return f.Text, nil
}

func (a *attempt) artifacts() []agentio.Artifact {
	files := make([]agentio.Artifact, 0, len(a.task.Artifacts))
	room := artifactsLimit
	for _, name := range a.task.Artifacts {
		f := a.showArtifact(name, min(room, artifactLimit))
		room = max(room-len(f.Text), 0)
		files = append(files, f)
	}
	return files
}

// changes is what a session before this one changed in the workspace, as text without secrets; "" for nothing.
func (a *attempt) changes() string {
	if !a.task.Continues || a.place.ws == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), changesTime)
	defer cancel()
	_, diff, err := a.place.ws.Changes(ctx)
	if err != nil {
		return "(they cannot be shown: " + a.runner.clean(err.Error()) + ")"
	}
	return string(a.runner.cleanLines(diff))
}

// reviewed appends to a prompt the change that it is about, without secrets. An agent that cannot see it must not judge it.
func (a *attempt) reviewed(text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), changesTime)
	defer cancel()
	_, diff, err := a.place.ws.Changes(ctx)
	if err != nil {
		return "", fmt.Errorf("read the change to review: %w", err)
	}
	return agentio.Diff(a.task.StdinFormat, text, string(a.runner.cleanLines(diff))), nil
}

// Preview returns the parts from files that are put before and after a command's prompt at its start, as they are now. It
// starts nothing, and writes nothing.
func (r *Runner) Preview(c *settle.Command) (before, after []agentio.Part, err error) {
	a := &attempt{runner: r, runs: r.runs.Load(), task: c, place: place{dir: r.dir, root: r.root}}
	rules, err := a.instructions()
	if err != nil {
		return nil, nil, err
	}
	if rules != "" {
		before = append(before, agentio.Part{Name: agentio.PartInstructions, Text: agentio.Instruct("", "", rules)})
	}
	if text := strings.TrimPrefix(agentio.Attach("", "", a.artifacts()), "\n"); text != "" {
		after = append(after, agentio.Part{Name: agentio.PartArtifacts, Text: text})
	}
	return before, after, nil
}

// showArtifact reads at most room bytes of a file. A file that cannot be shown gives a note instead: the agent may not need
// it.
func (a *attempt) showArtifact(name string, room int) agentio.Artifact {
	shown := agentio.Artifact{Path: name}
	if room == 0 {
		shown.Note = fmt.Sprintf("left out: the files before it fill the %d bytes that are shown", artifactsLimit)
		return shown
	}
	data, err := a.readArtifact(name, room+1)
	if err != nil {
		shown.Note = a.runner.clean(err.Error())
		return shown
	}
	whole := len(data) <= room
	if !whole {
		data = a.runner.secrets.trimPartial(data[:lastRune(data[:room])])
		shown.Note = fmt.Sprintf("only its first %d bytes are shown", len(data))
	}
	if !utf8.Valid(data) {
		shown.Note = "not shown: it is not text in UTF-8"
		return shown
	}
	shown.Text = string(a.runner.cleanLines(data))
	return shown
}

// readArtifact reads at most limit bytes of a regular file below the root. It does not follow symbolic links, which could
// lead outside.
func (a *attempt) readArtifact(name string, limit int) ([]byte, error) {
	if err := a.checkArtifact(name); err != nil {
		return nil, err
	}
	f, _, err := regular.Open(a.place.root, name)
	if err != nil {
		return nil, notReadable(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)))
	return data, notReadable(err)
}

// checkArtifact returns why a file must not be read.
func (a *attempt) checkArtifact(name string) error {
	if treepath.Of(name) == treepath.Outside {
		return errors.New("not shown: it is not a path below the root")
	}
	var fi fs.FileInfo
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		if treepath.OfName(part) != treepath.User {
			return fmt.Errorf("not shown: %s is nobody's to read", part)
		}
		at = path.Join(at, part)
		var err error
		if fi, err = a.place.root.Lstat(at); err != nil {
			return notReadable(err)
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("not shown: %s is a symbolic link", at)
		}
	}
	if !fi.Mode().IsRegular() {
		return errors.New("not shown: it is not a regular file")
	}
	return nil
}

// notReadable returns why a file cannot be read, without the path, which the caller shows.
func notReadable(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("not shown: it does not exist")
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("not shown: %w", err)
}

func anyArtifactLink(chain string, ok func(root, runner, key string) bool) bool {
	for link := range strings.SplitSeq(chain, ":") {
		root, rest, _ := strings.Cut(link, ".")
		runner, key, _ := strings.Cut(rest, ".")
		if ok(root, runner, key) {
			return true
		}
	}
	return false
}
