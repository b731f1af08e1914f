package importer

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"reconcile.dev/reconcile/schemas"
)

// titles describe the commands of a source.
var titles = map[string]string{"make": "Targets of the Makefile", "npm": "Scripts of package.json", "go": "Build, vet and test of Go modules",
	"just": "Recipes of the justfile", "github": "Steps of the workflows for GitHub"}

// DAG writes the found commands as the nodes of a DAG with a session, in YAML with comments. Both have the name of the
// source.
func DAG(source string, found Found) ([]byte, error) {
	policy := specMapping("failFast", specScalar("false"))
	policy.Content[0].HeadComment = "Each command shows how it ends."
	if source != "go" {
		policy.Content = append(policy.Content, specText("maxConcurrency"), specScalar("1"))
		policy.Content[2].HeadComment = "These commands work in one folder, and may be in each other's way."
	}
	nodes := &yaml.Node{Kind: yaml.SequenceNode}
	for _, c := range found.Commands {
		nodes.Content = append(nodes.Content, specNode(c))
	}
	head := fmt.Sprintf("Made by \"reconcile init --from %s\". It is yours: change what you like.\n"+
		"A node runs again when what it runs changes, or a file that its inputs match: add those that it depends on.", source)
	return specDocument(head, schemas.DAGKind.Name, source, specMapping("session", specText(source), "description", specText(titles[source]),
		"policy", policy, "nodes", nodes))
}

// Session writes the session of the DAG of a source.
func Session(source string) ([]byte, error) {
	return specDocument("", schemas.SessionKind.Name, source, specMapping("title", specText(titles[source])))
}

func specDocument(head, kind, name string, spec *yaml.Node) ([]byte, error) {
	doc := specMapping("apiVersion", specText(schemas.APIVersion), "kind", specText(kind), "metadata", specFlow(specMapping("name", specText(name))), "spec", spec)
	doc.HeadComment = head
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("write the spec of %s/%s: %w", strings.ToLower(kind), name, err)
	}
	return b.Bytes(), e.Close()
}

func specNode(c Command) *yaml.Node {
	n := specMapping("name", specText(c.Name))
	add := func(name string, value *yaml.Node) { n.Content = append(n.Content, specText(name), value) }
	if c.Description != "" {
		add("description", specText(c.Description))
	}
	if len(c.Needs) > 0 {
		add("needs", specFlow(specList(c.Needs)))
	}
	run := specList(c.Run)
	if !strings.Contains(c.Run[len(c.Run)-1], "\n") {
		specFlow(run)
	}
	add("run", run)
	if c.Dir != "" {
		add("workingDir", specText(c.Dir))
	}
	if len(c.Inputs) > 0 {
		add("inputs", specFlow(specList(c.Inputs)))
	}
	if len(c.Env) > 0 {
		env := specMapping()
		for _, name := range sortedKeys(c.Env) {
			env.Content = append(env.Content, specText(name), specText(c.Env[name]))
		}
		add("env", env)
	}
	if c.Minutes > 0 {
		add("timeout", specText(fmt.Sprintf("%dm", c.Minutes)))
	}
	if c.Held != "" {
		add("when", specText("false"))
		n.Content[len(n.Content)-2].HeadComment = "Remove this line to have it run: " + c.Held + "."
	}
	return n
}

// specMapping is a list of alternating field names and nodes.
func specMapping(fields ...any) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			m.Content = append(m.Content, specText(f))
		case *yaml.Node:
			m.Content = append(m.Content, f)
		}
	}
	return m
}

func specList(items []string) *yaml.Node {
	l := &yaml.Node{Kind: yaml.SequenceNode}
	for _, item := range items {
		l.Content = append(l.Content, specText(item))
	}
	return l
}

func specFlow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

// specText is a string, quoted where it would otherwise be another type.
func specText(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// specScalar is a number or a boolean.
func specScalar(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

// why describes some of the omissions.
func (f *Found) why() string {
	var all []string
	for _, o := range f.Omitted[:min(len(f.Omitted), 3)] {
		all = append(all, fmt.Sprintf("%s (%s)", short(o.What), o.Why))
	}
	if len(all) == 0 {
		return ""
	}
	return "; left out: " + strings.Join(all, ", ")
}
