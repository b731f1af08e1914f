package state

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"reconcile.dev/reconcile/schemas"
)

// The files of the mirror on GitHub are no part of a tree: nothing is decided by them, and a change of them is no news.

// MirrorDir is the folder of what the mirror has on record, below the root.
func (s *Store) MirrorDir() string { return s.layout().state + "/github" }

// MirrorPath is the path of the record of an issue.
func (s *Store) MirrorPath(issue int) string {
	return s.MirrorDir() + "/issue-" + strconv.Itoa(issue) + ".json"
}

// MirrorObjectPath is the path of the record of an object whose issue was made; "" for an object of no kind.
func (s *Store) MirrorObjectPath(ref schemas.Ref) string {
	for _, k := range s.layout().kinds {
		if k.Name == ref.Kind {
			return s.MirrorDir() + "/objects/" + k.Plural + "/" + ref.Name + ".json"
		}
	}
	return ""
}

// MirrorKeysPath is the path of the keys that markers are signed with.
func (s *Store) MirrorKeysPath() string { return s.MirrorDir() + "/keys.json" }

// SweepMirror takes out of the way what killed processes left of the locks of the mirror's files; see SweepLedgers.
func (s *Store) SweepMirror(ctx context.Context) error {
	err := s.sweepLocks(ctx, s.MirrorDir())
	for _, k := range s.layout().kinds {
		err = errors.Join(err, s.sweepLocks(ctx, s.MirrorDir()+"/objects/"+k.Plural))
	}
	return err
}

// DecodeMirror reads a file of the mirror into v, a pointer to one of the Mirror structs of schemas, which its Check is to
// judge. Unknown fields are accepted: a newer version may have written them.
func DecodeMirror(data []byte, v any) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return decodeState(data, bytes.Clone(data), v)
}

// EncodeMirror returns the bytes of the record of an issue. Lists that are nil are written as empty ones.
func EncodeMirror(f *schemas.MirrorFile) ([]byte, error) {
	c := *f
	if c.Comments == nil {
		c.Comments = []schemas.MirrorComment{}
	}
	if c.Labels == nil {
		c.Labels = []string{}
	}
	if c.Handled == nil {
		c.Handled = []schemas.MirrorHandled{}
	}
	return Encode(&c)
}
