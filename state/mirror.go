package state

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"reconcile.dev/reconcile/schemas"
)

// The files of the mirror on GitHub are not part of a tree: no decision depends on them, and Refresh does not report
// them.

// MirrorDir returns the directory of the mirror's records, github in the layout's folder of state, below the root.
func (s *Store) MirrorDir() string { return s.layout().state + "/github" }

// MirrorPath returns the path of the mirror's JSON record of the issue with this number.
func (s *Store) MirrorPath(issue int) string {
	return s.MirrorDir() + "/issue-" + strconv.Itoa(issue) + ".json"
}

// MirrorObjectPath returns the path of the mirror's JSON record of the object ref; "" if its kind is unknown. The object has
// an issue.
func (s *Store) MirrorObjectPath(ref schemas.Ref) string {
	for _, k := range s.layout().kinds {
		if k.Name == ref.Kind {
			return s.MirrorDir() + "/objects/" + k.Plural + "/" + ref.Name + ".json"
		}
	}
	return ""
}

// MirrorKeysPath returns the path of the mirror's file keys.json, with the keys that sign markers.
func (s *Store) MirrorKeysPath() string { return s.MirrorDir() + "/keys.json" }

// SweepMirror removes the leftover locks of killed processes on the mirror's files; see SweepLedgers.
func (s *Store) SweepMirror(ctx context.Context) error {
	err := s.sweepLocks(ctx, s.MirrorDir())
	for _, k := range s.layout().kinds {
		err = errors.Join(err, s.sweepLocks(ctx, s.MirrorDir()+"/objects/"+k.Plural))
	}
	return err
}

// DecodeMirror decodes the JSON data of a file of the mirror into v, a pointer to one of the Mirror structs of schemas. The
// caller validates v with its Check. Unknown fields are accepted: a newer version may have written them.
func DecodeMirror(data []byte, v any) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	return decodeState(data, bytes.Clone(data), v)
}

// EncodeMirror encodes the mirror's record of an issue, with its comments, labels and handled comments, as JSON. Nil lists
// are written as empty ones.
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
