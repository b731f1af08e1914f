package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// kinds is the table of kinds that the whole command line works with.
func kinds() schemas.Kinds { return controllers.Schemas() }

// config is what opening the tree takes of this process.
func (a *app) config() tree.Config {
	return tree.Config{Dir: a.global.dir, Now: a.now, Getenv: a.getenv, Log: a.log}
}

// caller is who called this process.
func (a *app) caller() caller.Caller {
	return caller.Caller{Dir: a.global.dir, Getenv: a.getenv, Ancestry: a.ancestry}
}

// egress says where this process may send data.
func (a *app) egress() egress.Policy { return egress.Policy{Getenv: a.getenv} }

// open opens the tree without reading it.
func (a *app) open() (*state.Store, error) { return a.config().Open() }

// load opens the tree and reads all of it, with what running processes have in their journals.
func (a *app) load(ctx context.Context) (s *state.Store, t *state.Tree, err error) {
	s, t, a.reader, err = a.config().Load(ctx)
	return s, t, err
}

// env is what operations work with.
func (a *app) env() ops.Env {
	return ops.Env{Tree: a.config(), Prefix: a.prefix, Caller: a.caller(), Sink: &reporter{app: a, last: time.Now()}}
}

// root opens the folder of the tree, for files beside the objects: logs, events, templates.
func (a *app) root() (*os.Root, error) {
	r, err := regular.Root(a.global.dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", a.global.dir, regular.Cause(err))
	}
	return r, nil
}

// parseRef reads kind/name; what it says about a wrong one is about the command line.
func parseRef(word string) (schemas.Ref, error) {
	ref, err := kinds().ParseRef(word)
	if err != nil {
		return schemas.Ref{}, badUsage("%v", err)
	}
	return ref, nil
}

// find returns the object that word names as kind/name, or a ClarificationRequest by the id of its clarification.
func find(t *state.Tree, word string) (*state.Entry, error) {
	if name, ok := clarificationID(word); ok {
		return findByID(t, name)
	}
	ref, err := parseRef(word)
	if err != nil {
		return nil, err
	}
	if e := t.Entry(ref); e != nil {
		return e, nil
	}
	return nil, notFound(t, ref)
}

// clarificationID is the id that word is, as CLR-42-001 or clarificationrequest/CLR-42-001, in any case.
func clarificationID(word string) (id string, ok bool) {
	kind, name, qualified := strings.Cut(word, "/")
	if !qualified {
		name = kind
	} else if k, known := kinds().Find(kind); !known || k.Name != schemas.ClarificationRequestKind.Name {
		return "", false
	}
	_, _, ok = clarify.ReadID(name)
	return name, ok
}

// findByID returns the first request by name that has the id. A request whose name is the word itself comes first.
func findByID(t *state.Tree, word string) (*state.Entry, error) {
	if e := t.Entry(requestRef(word)); e != nil {
		return e, nil
	}
	id, issue, _ := clarify.ReadID(word)
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		if requestStatus(e).ID == id {
			return e, nil
		}
	}
	return nil, noMatter(t, id, issue)
}

// refOf is parseRef for commands that need no object to be there: only an id is looked up in the tree.
func (a *app) refOf(ctx context.Context, word string) (schemas.Ref, error) {
	if _, ok := clarificationID(word); !ok {
		return parseRef(word)
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return schemas.Ref{}, err
	}
	defer s.Close()
	e, err := find(t, word)
	if err != nil {
		return schemas.Ref{}, err
	}
	return e.Ref, nil
}

// withRef puts a kind and a name that were given as two words, "dag checks", into one.
func withRef(args []string) []string {
	if len(args) > 1 && !strings.Contains(args[0], "/") {
		args = slices.Concat([]string{args[0] + "/" + args[1]}, args[2:])
	}
	return args
}

// notFound says that ref does not exist, and what was probably meant.
func notFound(t *state.Tree, ref schemas.Ref) error {
	var names []string
	for _, e := range t.Entries(ref.Kind) {
		if !e.Gone() {
			names = append(names, e.Name)
		}
	}
	word := strings.ToLower(ref.Kind)
	if len(names) == 0 {
		return fmt.Errorf("%s does not exist; the tree has no %s at all", ref, word)
	}
	hint := didYouMean(ref.Name, names)
	if hint == "" {
		hint = fmt.Sprintf("; \"reconcile get %s\" lists what there is", word)
	}
	return fmt.Errorf("%s does not exist%s", ref, hint)
}

// findNode checks that a DAG has a node.
func findNode(e *state.Entry, node string) error {
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if spec == nil {
		return fmt.Errorf("%s has no nodes", e.Ref)
	}
	var names []string
	for _, n := range spec.Nodes {
		names = append(names, n.Name)
	}
	if slices.Contains(names, node) {
		return nil
	}
	hint := didYouMean(node, names)
	if hint == "" {
		hint = "; its nodes: " + shorten(names, 20)
	}
	return fmt.Errorf("%s has no node %q%s", e.Ref, node, hint)
}

// shorten lists at most n words.
func shorten(words []string, n int) string {
	if len(words) <= n {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:n], ", "), len(words)-n)
}
