package vectors

import (
	"encoding/json"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/schemas/sections"
)

// format is that of snapshots and deltas. A delta has few of the sections. The sections of a snapshot are checked when one
// is opened that is not known to be sound, but for the words, which are checked page by page as they are used, and the
// vectors, see [Stored.Confirm]; Verify checks these, too.
var format = sections.Format{Magic: "RECINDEX", Version: 16}

// The numbers of the sections.
const (
	sectionMeta = iota
	sectionGraph
	sectionEmbedder
	sectionTopics
	sectionInputs
	sectionContributions // and five more, see contributions
	_
	_
	_
	_
	_
	sectionAliases
	sectionUnresolved
	sectionUnresolvedNames
	sectionFacts
	sectionDelta
	sectionPlaces
	sectionWords
	sectionVectors
	sectionCount
)

// parts are the sections of a file that is to be written.
type parts [sectionCount]sections.Content

func (p *parts) add(section int, data []byte) { p[section] = sections.Of(data) }

func (p *parts) content() sections.Content { return format.Content(p[:]...) }

// Meta is the metadata of a snapshot.
type Meta struct {
	// Model is the model of the vectors, Dims their dimension. "" if the snapshot has no vectors.
	Model string `json:"model,omitempty"`
	Dims  int    `json:"dims,omitempty"`
	// Inputs is the digest of the inputs, see [DigestInputs].
	Inputs uint64 `json:"inputs"`
	// Tools names helpers that the inputs were made with, and their versions.
	Tools string `json:"tools,omitempty"`
	// Base is the sum of the header of the snapshot that a delta belongs to.
	Base uint64 `json:"base,omitempty"`
}

func (m *Meta) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

// openFile opens a snapshot, and checks the sections that do not check themselves, unless they are known to be sound.
func openFile(data []byte, sound bool) (*sections.File, error) {
	f, err := format.Open(data)
	if errors.Is(err, sections.ErrVersion) {
		return nil, fmt.Errorf("%w: %w", ErrOtherVersion, err)
	}
	for i := sectionMeta; i < sectionWords && err == nil && !sound; i++ {
		err = f.Check(i)
	}
	if err != nil {
		return nil, damaged(err)
	}
	return f, nil
}

func metaOf(f *sections.File) (m Meta, err error) {
	if err = json.Unmarshal(f.Get(sectionMeta), &m); err != nil {
		err = damaged(err)
	}
	return m, err
}

// Write hands out the bytes, piece by piece; a piece is valid during the call. The error is that of to, or of the Scratch.
func (s *Snapshot) Write(to func([]byte) error) error { return s.content.Write(to) }
