package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/cmd/reconcile/internal/edit"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// editSpecs returns the files of DAGs with the changes that accepted plan changes call for. The acceptance is on disk first, so that a
// run after a kill finds out whether the change was written.
func (s *run) editSpecs(ctx context.Context) ([]state.Change, error) {
	if s.stopping {
		return nil, nil
	}
	edits := derive.Edits(s.tree)
	if len(edits) == 0 {
		return nil, nil
	}
	if err := s.flush(ctx, false); err != nil {
		return nil, err
	}
	var out []state.Change
	for i := range edits {
		data, err := s.edited(&edits[i])
		if err != nil {
			s.warn(fmt.Sprintf("%s: %v", edits[i].By, err))
			continue
		}
		out = append(out, state.Change{Path: edits[i].Before.Path, Data: data})
	}
	return out, nil
}

// edited returns the text of a file with an edit. What cannot be changed in its place is written again, without comments.
func (s *run) edited(e *derive.Edit) ([]byte, error) {
	decoder := schemas.DecoderFor(settle.TableOf(s.tree).Schemas(), s.tree.Settings())
	src, err := regular.Read(s.loop.Store.Root(), e.Before.Path)
	if err != nil {
		return nil, regular.Cause(err)
	}
	if is := decoder.Decode(e.Before.Path, src).Object; is == nil || is.Digest != e.Before.Digest {
		return nil, errors.New(e.Before.Path + " is being changed by somebody else; the next turn looks again")
	}
	items := make([]edit.Item, len(e.Items))
	for i, n := range e.Items {
		items[i] = edit.Item{Name: n.Name, Value: n.Value}
	}
	for _, write := range []func() ([]byte, error){
		func() ([]byte, error) { return edit.Items(src, "nodes", items) },
		func() ([]byte, error) { return rewritten(src, e) },
	} {
		data, err := write()
		if err != nil {
			continue
		}
		if is := decoder.Decode(e.Before.Path, data).Object; is != nil && is.Ref == e.Before.Ref && is.Digest == e.Object.Digest {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%s cannot be changed safely: change its nodes by hand, as reconcile describe %s says", e.Before.Path, e.By)
}

// rewritten is a file with all nodes of an edit, without its comments.
func rewritten(src []byte, e *derive.Edit) ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, err
	}
	var spec any
	if err := json.Unmarshal(e.Object.Canonical(), &spec); err != nil {
		return nil, err
	}
	doc["spec"] = spec
	if strings.HasSuffix(e.Before.Path, ".json") {
		return json.MarshalIndent(doc, "", "  ")
	}
	return yaml.Marshal(doc)
}
