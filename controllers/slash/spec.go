package slash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// decode is a spec as a run will read it. The error says what the reader would say.
func (d *commandDecider) decode(s *derive.Spec) (*schemas.Object, error) {
	src, err := json.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": s.Ref.Kind,
		"metadata": schemas.Metadata{Name: s.Ref.Name}, "spec": s.Spec})
	if err != nil {
		return nil, errors.New("it cannot be written down")
	}
	got := d.decoder.Decode(strings.TrimSuffix(s.Path, ".yaml")+".json", src)
	for _, p := range got.Problems {
		if p.Severity == schemas.Error {
			return nil, fmt.Errorf("%s: %s", codeText(strings.TrimPrefix(p.Field, "spec.")), codeText(p.Message))
		}
	}
	return got.Object, nil
}

// rememberLimit is how long an observation may be, in characters.
const rememberLimit = 2000

// digest is that of a comment's body.
func digest(body string) string {
	sum := sha256.Sum256([]byte(body))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// specName is the name of the spec that a comment becomes, or begins the names of several.
func specName(comment int64) string {
	return fmt.Sprintf("%s%d", settle.CommentSpecPrefix, comment)
}

// written returns the path of the spec that an interrupted run made from a command; "" if it does not exist.
func (d *commandDecider) written(name string) string {
	for _, k := range writtenKinds {
		if e := d.Tree.Entry(schemas.Ref{Kind: k.Name, Name: name}); e != nil && e.Object != nil {
			return e.Object.Path
		}
	}
	return ""
}

// writtenBy is how records call the author of a comment.
func writtenBy(a Actor) string { return settle.CommentAuthorPrefix + a.Login }

// propose adds a spec to the tree and decides it. The error describes, in Markdown, an invalid spec.
func (d *commandDecider) propose(k schemas.Kind, name string, spec schemas.Spec) (*derive.Spec, *schemas.Object, error) {
	ref := schemas.Ref{Kind: k.Name, Name: name}
	out := &derive.Spec{Ref: ref, Spec: spec,
		Path: path.Join(d.Tree.Settings().Folders.Specs, k.Plural, name+".yaml")}
	o, err := d.decode(out)
	if err != nil {
		return nil, nil, err
	}
	e := &state.Entry{Ref: ref}
	if old := d.tree.Entry(ref); old != nil {
		if !old.Gone() {
			return nil, nil, fmt.Errorf("%s is there already, and broken", codeText(ref.String()))
		}
		*e = *old
	}
	e.Object = o
	d.tree = (&settle.Decider{Identify: d.identify}).Settle(d.tree.With(e), d.Now, []schemas.Ref{ref}).Tree
	d.ready = nil
	return out, o, nil
}
