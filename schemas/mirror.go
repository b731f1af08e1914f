package schemas

import (
	"errors"
	"fmt"
	"strings"
)

// MirrorVersion is the version of the files of the mirror.
const MirrorVersion = 1

// MirrorFile is state/github/issue-<N>.json: what this program created on one issue, and read there. Ids of GitHub are
// numbers of more than 32 bits.
type MirrorFile struct {
	Version int    `json:"version"`
	Repo    string `json:"repo"` // owner/name: the records of another repository say nothing of this one
	Issue   int    `json:"issue"`
	// Made is the object that the issue was created for, as dag/checks; "" for an issue that the program did not
	// create.
	Made string `json:"made,omitempty"`
	// Comments are ours, sorted by key.
	Comments []MirrorComment `json:"comments"`
	// Labels are those that this program added and has not removed, sorted. Other labels are left alone.
	Labels []string `json:"labels"`
	// Adding are labels that a call in progress adds and that were not there before, sorted.
	Adding []string `json:"adding,omitempty"`
	// Others are wanted labels that someone else had added, sorted: they stay.
	Others []string `json:"others,omitempty"`
	// Read says how far the comments of other people were read.
	Read MirrorRead `json:"read,omitzero"`
	// Handled are the comments of other people in which something was found, sorted by their ids.
	Handled []MirrorHandled `json:"handled"`
}

// MirrorComment is a comment of ours: one that exists, or is about to be made.
type MirrorComment struct {
	// Key identifies its content: status/dag/checks, round/CLR-42-001/1/question, reply/<id of a comment>.
	Key string `json:"key"`
	// ID is GitHub's; 0 until it is known.
	ID int64 `json:"id,omitempty"`
	// Digest is that of the body as we left it or, while Intended is set, as it is to become: sha256:….
	Digest string `json:"digest"`
	// Stands is the digest of the body as GitHub stores it, if that differs; "" for the same.
	Stands string `json:"stands,omitempty"`
	// Intended is the start of a call that creates or edits the comment and whose end is not on record. The next run
	// checks the comments on GitHub before it repeats the call.
	Intended Time `json:"intended,omitzero"`
}

// MirrorRead is how far the comments of an issue were read.
type MirrorRead struct {
	// Since is when the newest comment that was read was last changed, by the clock of GitHub.
	Since Time `json:"since,omitzero"`
	// Seen are the ids of comments that were processed and are no longer read, if they were changed so shortly before
	// Since that the next call lists them again; sorted.
	Seen []int64 `json:"seen,omitempty"`
}

// MirrorHandled is the result of processing a comment.
type MirrorHandled struct {
	Comment int64 `json:"comment"` // its id
	// Digest is that of its body when it was read: sha256:…. Later edits are ignored.
	Digest string `json:"digest"`
	// Outcome is one of the Handled constants.
	Outcome string `json:"outcome"`
	// Specs are the paths of the files that it became.
	Specs []string `json:"specs,omitempty"`
	// Proofs are the approvals of gates among Specs: they prove who approved.
	Proofs []MirrorProof `json:"proofs,omitempty"`
	// Receipt is the reaction that shows the result to its author: eyes, +1 or confused; "" until it is given.
	Receipt string `json:"receipt,omitempty"`
	// Reply is the text of the comment reply/<id> to its author; "" for none.
	Reply string `json:"reply,omitempty"`
}

// MirrorProof is an Action from a comment that approves a gate.
type MirrorProof struct {
	Spec   string `json:"spec"`   // its path
	Digest string `json:"digest"` // of the spec
	Author string `json:"author"` // of the comment, as GitHub tells it
}

// Outcomes of comments.
const (
	HandledAccepted = "accepted" // all that it asks for is in specs, or was told
	HandledRefused  = "refused"  // Reply says why
)

// MirrorObject is state/github/objects/<kinds>/<name>.json: the issue of an object that names none.
type MirrorObject struct {
	Version int    `json:"version"`
	Repo    string `json:"repo"`
	Object  string `json:"object"`          // dag/checks
	Issue   int    `json:"issue,omitempty"` // 0 until it is known
	// Intended is when the issue was begun to be made, while its number is not on record.
	Intended Time `json:"intended,omitzero"`
	// Titles has the digest of the title that was last written, or would have been without a foreign edit; before it
	// that of the previous one, until the write is on record. Empty if unknown.
	Titles []string `json:"titles,omitempty"`
	// Body is the digest of the issue's body, as that of a title; "" where it is not known.
	Body string `json:"body,omitempty"`
}

// MirrorKeys is state/github/keys.json: the keys that sign the markers in our comments. The first key signs, each may
// have signed; a second one results only from a merge.
type MirrorKeys struct {
	Version int      `json:"version"`
	Keys    []string `json:"keys"` // 64 hexadecimal digits each, sorted
	// Fresh reports that not everything was read yet since the first key was made: there may be comments signed with a
	// lost key.
	Fresh bool `json:"fresh,omitempty"`
}

// MirrorKeyLength is the length of a key of [MirrorKeys].
const MirrorKeyLength = 64

// errMirrorVersion is the error of a file that a newer version of this program wrote.
var errMirrorVersion = errors.New("written by a newer version of reconcile; update it")

// IsNewerMirror reports whether err, from the Check of a mirror's file, says that its version is newer than this program's.
// The file must stay where it is.
func IsNewerMirror(err error) bool { return errors.Is(err, errMirrorVersion) }

// Check returns an error if the mirror's record has a bad version or repo, is not about this issue, or has a comment with a
// bad or repeated key, or a handled comment without an ID. Such a file is damaged.
func (f *MirrorFile) Check(issue int) error {
	if err := checkMirror(f.Version, f.Repo); err != nil {
		return err
	}
	if f.Issue != issue {
		return fmt.Errorf("it is about issue %d, not %d", f.Issue, issue)
	}
	seen := map[string]bool{}
	for _, c := range f.Comments {
		if c.Key == "" || strings.ContainsAny(c.Key, " \n<>") || seen[c.Key] || c.ID < 0 {
			return fmt.Errorf("comment %.100q (id %d) has no key, one that cannot be, or that of another", c.Key, c.ID)
		}
		seen[c.Key] = true
	}
	for _, h := range f.Handled {
		if h.Comment <= 0 {
			return fmt.Errorf("a handled comment has the id %d", h.Comment)
		}
	}
	return nil
}

// Check returns an error if the mirror's record has a bad version, repo or issue, or is not about the object ref.
func (o *MirrorObject) Check(ref Ref) error {
	if err := checkMirror(o.Version, o.Repo); err != nil {
		return err
	}
	if o.Object != ref.String() || o.Issue < 0 {
		return fmt.Errorf("it is about issue %d of %.100q, not of %s", o.Issue, o.Object, ref)
	}
	return nil
}

// Check returns an error if there is no key, a key does not have MirrorKeyLength hexadecimal digits, or the version is a
// newer one.
func (k *MirrorKeys) Check() error {
	if k.Version > MirrorVersion {
		return fmt.Errorf("its version is %d: %w", k.Version, errMirrorVersion)
	}
	for _, key := range k.Keys {
		if len(key) != MirrorKeyLength || strings.Trim(key, "0123456789abcdef") != "" {
			return fmt.Errorf("a key is not %d hexadecimal digits", MirrorKeyLength)
		}
	}
	if len(k.Keys) == 0 {
		return errors.New("it has no key")
	}
	return nil
}

func checkMirror(version int, repo string) error {
	switch {
	case version > MirrorVersion:
		return fmt.Errorf("its version is %d: %w", version, errMirrorVersion)
	case !isRepo(repo):
		return fmt.Errorf("its repo %.100q does not have the form owner/name", repo)
	}
	return nil
}
