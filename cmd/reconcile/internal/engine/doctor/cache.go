package doctor

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// checkCache compares the tree as read with and without the cache. It has one of them in memory at a time.
func checkCache(ctx context.Context, e *Patient) []Finding {
	if e.tree == nil {
		return skipped("the tree cannot be read")
	}
	const tries = 3 // a live run may change the tree between the two reads
	var differ []string
	for range tries {
		plain, err := e.contents(ctx, true)
		if err != nil {
			return []Finding{bad(fmt.Sprintf("the tree cannot be read without its cache: %v", err), "")}
		}
		cached, err := e.contents(ctx, false)
		if err != nil {
			return []Finding{bad(fmt.Sprintf("the tree cannot be read with its cache: %v", err), "").by(e.dropCache)}
		}
		if differ = plain.differences(cached); len(differ) == 0 {
			return ok("says of " + schemas.Count(plain.objects, "object") + " what their files say")
		}
	}
	return []Finding{bad("the cache says something else than the files about "+some(differ),
		"doctor --fix removes it; the next run makes a new one").by(e.dropCache)}
}

// contents reads the tree anew.
func (e *Patient) contents(ctx context.Context, noCache bool) (contents, error) {
	s, err := e.Open(noCache)
	if err != nil {
		return contents{}, err
	}
	t, err := s.Load(ctx)
	if err = errors.Join(err, s.Close()); err != nil {
		return contents{}, err
	}
	return contentsOf(t)
}

// contents are digests of what a tree says, to compare it with another one after it left the memory.
type contents struct {
	objects  int
	of       map[schemas.Ref]digest // objects and ledgers
	problems map[digest]string      // the path of each, by the digest of its text
}

type digest [sha256.Size]byte

// contentsOf decodes every status of t, and keeps none that can be decoded again.
func contentsOf(t *state.Tree) (contents, error) {
	c := contents{objects: t.Len(), of: make(map[schemas.Ref]digest, t.Len()), problems: map[digest]string{}}
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			d, err := digestOf(e)
			if err != nil {
				return c, err
			}
			c.of[e.Ref] = d
		}
	}
	for _, l := range t.Ledgers() {
		text, err := json.Marshal(l.Records())
		if err != nil {
			return c, err
		}
		c.of[l.Ref()] = sha256.Sum256(fmt.Appendf(text, " %d %d", l.Last, l.Open))
	}
	for _, p := range t.Problems() {
		c.problems[sha256.Sum256([]byte(p.Error()))] = p.Path
	}
	return c, nil
}

// digestOf is the digest of everything that an entry has.
func digestOf(e *state.Entry) (digest, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%d problems, %d runs\n", len(e.Problems), e.RunCount())
	if o := e.Object; o != nil {
		fmt.Fprintf(h, "object %q %q %d\n", o.Digest, o.Path, len(o.Canonical()))
		h.Write(o.Canonical())
	}
	for _, node := range slices.Sorted(maps.Keys(e.Inputs)) {
		fmt.Fprintf(h, "input %q %q\n", node, e.Inputs[node])
	}
	if e.HasStatus() {
		text, err := state.EncodeStatus(e.Ref, e.Status())
		e.ReleaseStatus()
		if err != nil {
			return digest{}, err
		}
		h.Write(text)
	}
	return digest(h.Sum(nil)), nil
}

// differences names the objects and ledgers about which two trees differ, and the files of which they have different problems, sorted.
func (c contents) differences(other contents) []string {
	differ := map[string]bool{}
	for _, pair := range [][2]contents{{c, other}, {other, c}} {
		for ref, d := range pair[0].of {
			if is, ok := pair[1].of[ref]; !ok || is != d {
				differ[ref.String()] = true
			}
		}
		for text, path := range pair[0].problems {
			if _, ok := pair[1].problems[text]; !ok {
				differ[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(differ))
}
