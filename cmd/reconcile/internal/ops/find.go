package ops

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// find returns the object that word names: kind/name, or the id of a clarification.
func find(t *state.Tree, word string) (*state.Entry, error) {
	if name, ok := clarificationID(word); ok {
		return findByID(t, name)
	}
	ref, err := parseRef(settle.TableOf(t), word)
	if err != nil {
		return nil, meant(t, word, err)
	}
	if e := t.Entry(ref); e != nil {
		return e, nil
	}
	return nil, notFound(t, ref)
}

// meant returns the error that word is not kind/name, with the objects that have it as their name or are declared in the file.
func meant(t *state.Tree, word string, err error) error {
	var refs []string
	for _, k := range settle.TableOf(t).Schemas() {
		for _, e := range t.Entries(k.Name) {
			if !e.Gone() && (e.Name == word || isDeclaredIn(e, path.Clean(filepath.ToSlash(word)))) {
				refs = append(refs, e.Ref.String())
			}
		}
	}
	if len(refs) == 0 {
		return err
	}
	return badRequest("%q is not kind/name; did you mean %s?", word, strings.Join(refs, " or "))
}

// isDeclaredIn reports whether the object's spec, be it right or wrong, is in the file at p below the root.
func isDeclaredIn(e *state.Entry, p string) bool {
	return e.Object != nil && e.Object.Path == p ||
		slices.ContainsFunc(e.Problems, func(problem schemas.Problem) bool { return problem.Path == p })
}

// parseRef parses kind/name.
func parseRef(table settle.Table, word string) (schemas.Ref, error) {
	ref, err := table.Schemas().ParseRef(word)
	if err != nil {
		return schemas.Ref{}, badRequest("%w", err)
	}
	return ref, nil
}

// clarificationID returns the id in word, such as CLR-42-001 or clarificationrequest/CLR-42-001, in any case.
func clarificationID(word string) (id string, ok bool) {
	kind, name, qualified := strings.Cut(word, "/")
	if !qualified {
		name = kind
	} else if k, known := controllers.Schemas().Find(kind); !known || k.Name != schemas.ClarificationRequestKind.Name {
		return "", false
	}
	_, _, ok = clarify.ReadID(name)
	return name, ok
}

// findByID returns the first request by name with the id. A request whose name is the word itself comes first.
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
	return nil, threadNotFound(t, id, issue)
}

// findRef is [find] for operations on objects that need not exist: only what is not kind/name is looked up in the tree.
func (e Env) findRef(ctx context.Context, word string) (schemas.Ref, error) {
	if _, ok := clarificationID(word); !ok {
		if ref, err := parseRef(e.Tree.Table(), word); err == nil {
			return ref, nil
		}
	}
	s, t, err := e.load(ctx)
	if err != nil {
		return schemas.Ref{}, err
	}
	defer s.Close()
	found, err := find(t, word)
	if err != nil {
		return schemas.Ref{}, err
	}
	return found.Ref, nil
}

// notFound says that ref does not exist, and suggests a similar name.
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
	hint := schemas.DidYouMean(ref.Name, names)
	if hint == "" {
		hint = fmt.Sprintf("; \"reconcile get %s\" lists what there is", word)
	}
	return fmt.Errorf("%s does not exist%s", ref, hint)
}

// findNode checks that a DAG has a node.
func findNode(e *state.Entry, node string) error {
	if schemas.SpecAs[*schemas.DAGSpec](e.Object) == nil {
		return fmt.Errorf("%s has no nodes", e.Ref)
	}
	names := nodes.NodeNames(e)
	if slices.Contains(names, node) {
		return nil
	}
	hint := schemas.DidYouMean(node, names)
	if hint == "" {
		hint = "; its nodes: " + schemas.Shorten(names, 20)
	}
	return fmt.Errorf("%s has no node %q%s", e.Ref, node, hint)
}

// checkThreadWord returns an error for a word that is neither an id nor a possible name of a request.
func checkThreadWord(word string) error {
	if _, _, ok := clarify.ReadID(word); !ok && schemas.CheckName(word) != nil {
		return noThreadID(word)
	}
	return nil
}

func noThreadID(word string) error {
	return badRequest("%s is neither the id of a clarification, which is CLR-ISSUE-NUMBER as CLR-42-001, nor the name of "+
		"a request", render.Argument(word))
}

// agentRef names an agent.
func agentRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.AgentKind.Name, Name: name} }

// findAgent returns the entry of a usable agent.
func findAgent(t *state.Tree, name string) (*state.Entry, error) {
	e := t.Entry(agentRef(name))
	switch {
	case e == nil || e.Gone():
		return nil, notFound(t, agentRef(name))
	case e.Broken():
		return nil, fmt.Errorf("%s cannot be used: %s", e.Ref, e.Problems[0].Error())
	}
	return e, nil
}

// requestRef names a clarification request.
func requestRef(name string) schemas.Ref {
	return schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: name}
}

// requestSpec returns the spec of a request, or nil.
func requestSpec(e *state.Entry) *schemas.ClarificationRequestSpec {
	if e == nil {
		return nil
	}
	return schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
}

// requestStatus is never nil, and must not be changed.
func requestStatus(e *state.Entry) *schemas.ClarificationRequestStatus {
	if e != nil {
		if st, ok := e.Status().(*schemas.ClarificationRequestStatus); ok {
			return st
		}
	}
	return new(schemas.ClarificationRequestStatus)
}

// findThread returns the clarification that a word names: by its id, in any case and with or without leading zeros, or
// by the name of its request.
func findThread(t *state.Tree, word string) (threads.Thread, error) {
	if id, issue, ok := clarify.ReadID(word); ok {
		for _, m := range threads.All(t, issue, false) {
			if m.ID == id {
				return m, nil
			}
		}
		return threads.Thread{}, threadNotFound(t, id, issue)
	}
	e := t.Entry(requestRef(word))
	switch {
	case requestSpec(e) != nil:
	case strings.HasPrefix(word, "clr-"):
		return threads.Thread{}, noThreadID(word)
	default:
		return threads.Thread{}, threadNotFound(t, word, -1)
	}
	issue, id := requestSpec(e).Issue, requestStatus(e).ID
	for _, m := range threads.All(t, issue, false) {
		if m.Entry == e && m.ID == id {
			return m, nil
		}
	}
	return threads.OfRequest(t, e), nil
}

// threadNotFound says that a clarification does not exist, and suggests one of the issue, or of any issue with -1.
func threadNotFound(t *state.Tree, word string, issue int) error {
	var names []string
	for _, m := range threads.All(t, issue, false) {
		names = append(names, m.Title())
		if m.ID != "" && m.Request != "" {
			names = append(names, m.Request)
		}
	}
	hint := schemas.DidYouMean(word, names)
	switch {
	case hint != "":
	case issue >= 0 && len(names) == 0:
		hint = fmt.Sprintf("; nothing was asked about issue %d", issue)
	case issue >= 0:
		hint = fmt.Sprintf("; \"reconcile clarify --issue %d\" shows what was asked there", issue)
	default:
		hint = `; "reconcile clarify" lists what is open`
	}
	err := clarify.NewNotFound(word)
	err.Message += hint
	return err
}

// isObject reports whether a word names an object, and not a kind.
func isObject(word string) bool {
	_, ok := clarificationID(word)
	return ok || strings.Contains(word, "/")
}

// objectNames joins a kind with the names behind it, as in "dag checks lint". Other words stay as they are.
func objectNames(words []string) []string {
	if len(words) < 2 || isObject(words[0]) || strings.Contains(strings.Join(words, " "), "/") {
		return words
	}
	var out []string
	for _, name := range words[1:] {
		out = append(out, words[0]+"/"+name)
	}
	return out
}

func findAll(t *state.Tree, words []string) ([]*state.Entry, error) {
	var out []*state.Entry
	for _, word := range objectNames(words) {
		e, err := find(t, word)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// kindHint suggests a kind for an unknown word, and lists all kinds.
func kindHint(kinds schemas.Kinds, word string) string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.Plural)
	}
	return schemas.DidYouMean(word, kinds.Words()) + "; kinds: " + strings.Join(all, ", ")
}

// findKind returns the kind that a word names.
func findKind(env Env, word string) (schemas.Kind, error) {
	kinds := env.kinds()
	k, ok := kinds.Find(word)
	if !ok {
		return k, badRequest("no kind is called %q%s; \"reconcile schema\" lists them", word, schemas.DidYouMean(word, kinds.Words()))
	}
	return k, nil
}

func namesOf[T interface{ String() string }](all []T) []string {
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = t.String()
	}
	return out
}

// findWorkflow finds the workflow that a word names.
func findWorkflow(t *state.Tree, word string) (*state.Entry, error) {
	if !strings.Contains(word, "/") {
		word = schemas.WorkflowKind.Ref(word).String()
	}
	e, err := find(t, word)
	switch {
	case err != nil:
		return nil, err
	case e.Kind != schemas.WorkflowKind.Name:
		return nil, badRequest("%s cannot be started; usage: reconcile start WORKFLOW --issue N", e.Ref)
	case e.Gone():
		return nil, notFound(t, e.Ref)
	}
	return e, nil
}

// findTask finds the node that a word names: dag/NAME:NODE, or the unique name of a node or of an agent. An agent represents the
// node that it works on, or that waits for it. near also accepts the only name that is like the word.
func findTask(t *state.Tree, word string, near bool) (dag, node string, err error) {
	if target, name, qualified := strings.Cut(word, ":"); qualified {
		e, err := find(t, target)
		if err != nil {
			return "", "", err
		}
		return e.Name, name, findTold(e, name)
	}
	byName, byAgent, running := tasksNamed(t, word)
	switch {
	case len(byName) == 1:
		dag, node, _ = strings.Cut(strings.TrimPrefix(byName[0], "dag/"), ":")
	case len(byName) > 1:
		return "", "", badRequest("%q is the name of more than one node: %s", word, schemas.Shorten(byName, 10))
	case len(running) == 1:
		dag, node, _ = strings.Cut(strings.TrimPrefix(running[0], "dag/"), ":")
	case len(running) > 1:
		return "", "", badRequest("agent/%s works on more than one node: %s", word, schemas.Shorten(running, 10))
	case len(byAgent) == 1:
		dag, node, _ = strings.Cut(strings.TrimPrefix(byAgent[0], "dag/"), ":")
	case len(byAgent) > 1:
		return "", "", badRequest("agent/%s has more than one node: %s", word, schemas.Shorten(byAgent, 10))
	default:
		if only := schemas.OnlyNear(word, taskNames(t)); near && only != "" {
			return findTask(t, only, false)
		}
		return "", "", badRequest("no node is called %q, and no agent of that name has an open one%s; write dag/NAME:NODE", word,
			schemas.DidYouMean(word, taskNames(t)))
	}
	return dag, node, nil
}
