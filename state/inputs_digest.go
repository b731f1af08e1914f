package state

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// updateDigests computes the digest of each node's inputs: over the paths and contents of all files that its globs match,
// in the order of the paths. It computes those that depend on changed files, or all on the first call, and returns the
// objects concerned.
func (in *inputs) updateDigests(changed []string) []schemas.Ref {
	if in.matched != nil {
		return in.digestGlobs(in.rematch(changed))
	}
	in.matched, in.digests = map[string][]string{}, map[schemas.Ref]map[string]string{}
	if len(in.nodes) == 0 {
		return nil
	}
	paths := slices.Sorted(maps.Keys(in.files))
	for _, g := range in.globs {
		for _, p := range paths {
			if matchGlob(g, p) {
				in.matched[g] = append(in.matched[g], p)
			}
		}
	}
	return in.digestGlobs(in.globs)
}

// rematch updates the matches of globs for changed files, and returns the globs that match one now or did before.
func (in *inputs) rematch(changed []string) []string {
	var globs []string
	if len(changed) == 0 {
		return nil
	}
	for _, g := range in.globs {
		touched := false
		for _, p := range changed {
			i, had := slices.BinarySearch(in.matched[g], p)
			switch {
			case had && in.files[p] == nil:
				in.matched[g] = slices.Delete(in.matched[g], i, i+1)
			case !had && (in.files[p] == nil || !matchGlob(g, p)):
				continue
			case !had:
				in.matched[g] = slices.Insert(in.matched[g], i, p)
			}
			touched = true
		}
		if touched {
			globs = append(globs, g)
		}
	}
	return globs
}

// digestGlobs computes the digests of the nodes with one of the globs, and returns their objects.
func (in *inputs) digestGlobs(globs []string) []schemas.Ref {
	some := map[string]bool{}
	var refs []schemas.Ref
	for _, g := range globs {
		some[g] = true
		refs = append(refs, in.users[g]...)
	}
	if len(refs) == 0 {
		return nil
	}
	slices.SortFunc(refs, schemas.Ref.Compare)
	refs = slices.Compact(refs)
	in.digests = maps.Clone(in.digests) // the former map is compared later
	known := map[string]string{}        // many nodes have the same globs
	for _, ref := range refs {
		out := make(map[string]string, len(in.nodes[ref]))
		for node, globs := range in.nodes[ref] {
			if had, ok := in.digests[ref][node]; ok && !slices.ContainsFunc(globs, func(g string) bool { return some[g] }) {
				out[node] = had
				continue
			}
			key := strings.Join(globs, "\x00")
			if known[key] == "" {
				known[key] = in.digest(globs)
			}
			out[node] = known[key]
		}
		in.digests[ref] = out
	}
	return refs
}

func (in *inputs) digest(globs []string) string {
	var paths []string
	for _, g := range globs {
		paths = append(paths, in.matched[g]...)
	}
	slices.Sort(paths)
	h := sha256.New()
	for _, p := range slices.Compact(paths) {
		io.WriteString(h, p)
		h.Write([]byte{0})
		h.Write(in.files[p].digest[:])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
