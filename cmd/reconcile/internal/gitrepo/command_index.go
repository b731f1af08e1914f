package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

func (k *command) settle(ctx context.Context) error {
	if settledIndex(k.layout) {
		return nil
	}
	w, err := openScratchDir(ctx, k.layout, k.lockTimeout)
	if err != nil {
		return err
	}
	return errors.Join(k.catchUp(ctx, w), w.close())
}

// catchUp updates the index for recorded commits that are still at HEAD, and reverts it where HEAD is still at the
// parent because the commit was never made.
func (k *command) catchUp(ctx context.Context, w *scratchDir) error {
	list := w.readPending()
	if len(list) == 0 {
		return nil
	}
	head, err := k.head(ctx)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.GitDir != k.gitDir || p.Ref != head.Ref || p.New != head.Hash && p.Old != head.Hash {
			continue
		}
		if err := k.updateIndex(ctx, p, head.Hash); err != nil {
			return err
		}
	}
	return w.clearPending()
}

// updateIndex sets the index entries of the files that a commit changed to their state in "to", which is the commit
// or its parent. See native.nextIndex for why the index goes first.
func (k *command) updateIndex(ctx context.Context, p pending, to string) error {
	edits, err := k.difference(ctx, p)
	if err != nil {
		return err
	}
	if to != p.New {
		for i, e := range edits {
			edits[i].was, edits[i].now = e.now, e.was
		}
	}
	return k.followIndex(ctx, edits)
}

// difference lists what a commit changed.
func (k *command) difference(ctx context.Context, p pending) ([]commandEdit, error) {
	args := []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--root", "--no-commit-id", p.New}
	if p.Old != "" {
		args = append(args[:len(args)-1], p.Old, p.New)
	}
	out, err := k.run(ctx, call{}, args...)
	if err != nil {
		return nil, err
	}
	fields := nulSplit(out)
	var edits []commandEdit
	for i := 0; i+1 < len(fields); i += 2 { // ":<mode> <mode> <hash> <hash> <letter>", path
		f := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", fields[i])
		}
		edits = append(edits, commandEdit{fields[i+1], f[0] + " " + f[2], f[1] + " " + f[3]})
	}
	return edits, nil
}

// commandEdit is an edit in git's format: "100644 <hash>", or zeros.
type commandEdit struct{ path, was, now string }

// followIndex is index.follow for an index that only git can write.
func (k *command) followIndex(ctx context.Context, edits []commandEdit) error {
	out, err := k.run(ctx, call{}, "ls-files", "-s", "-z")
	if err != nil {
		return err
	}
	staged := map[string]string{} // path -> "100644 <hash> 0"
	for _, line := range nulSplit(out) {
		if entry, path, ok := strings.Cut(line, "\t"); ok {
			staged[path] = entry
		}
	}
	var gone, info []string
	for _, e := range edits {
		cur, found := staged[e.path]
		none := strings.HasPrefix(e.was, "000000")
		switch {
		case !(found && cur == e.was+" 0" || !found && none):
		case strings.HasPrefix(e.now, "000000"):
			gone = append(gone, e.now+"\t"+e.path)
		default:
			info = append(info, e.now+"\t"+e.path)
		}
	}
	info = append(gone, info...) // a folder may replace a file, and the reverse
	deadline := time.Now().Add(k.lockTimeout)
	for {
		_, err := k.run(ctx, call{stdin: nulJoin(info)}, "update-index", "-z", "--index-info")
		if err = remoteBusy(err); !errors.Is(err, ErrBusy) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
