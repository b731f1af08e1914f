package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// mixed makes the specs of a tree before its first run. Its parts differ in size as those of real trees do: a few DAGs
// have most of the nodes, one issue has a tenth of the observations, a few owners have most of the sessions. Four DAGs
// run, the others belong to sessions that are paused.
type mixed struct {
	dir string
	n   int // files
	rnd *rand.Rand
}

func newMixed(dir string, n int, seed uint64) *mixed {
	return &mixed{dir: dir, n: n, rnd: rand.New(rand.NewPCG(seed, uint64(n)))}
}

// parts returns how many objects of each kind n files have, in the order in which they are written.
func (m *mixed) parts() (sessions, agents, dags, observations, requests, replies int) {
	sessions, agents, dags = max(4, m.n/100), max(4, m.n/500), max(4, m.n/5)
	requests = max(2, m.n*15/100)
	replies = requests
	observations = max(1, m.n-sessions-agents-dags-requests-replies)
	return
}

func (m *mixed) write() error {
	sessions, agents, dags, observations, requests, replies := m.parts()
	for _, part := range []struct {
		folder func(i int) string
		count  int
		spec   func(b *bytes.Buffer, i int)
	}{
		{func(int) string { return "sessions" }, sessions, m.session},
		{func(int) string { return "team" }, agents, m.agent},
		{func(i int) string { return fmt.Sprintf("work/area-%d/%02d", i%3, i%40) }, dags, m.dag},
		{func(int) string { return "observations" }, observations, m.observation}, // all in one folder
		{func(i int) string { return fmt.Sprintf("questions/%d", m.issue(i)) }, requests, m.request},
		{func(int) string { return "replies" }, replies, m.reply},
	} {
		for i := range part.count {
			var b bytes.Buffer
			part.spec(&b, i)
			folder := part.folder(i)
			top, _, _ := strings.Cut(folder, "/")
			file := filepath.Join("specs", folder, top+"-"+strconv.Itoa(i)+".yaml")
			if err := writeFile(filepath.Join(m.dir, file), b.String()); err != nil {
				return err
			}
		}
	}
	return writeFile(filepath.Join(m.dir, "reconcile.yaml"),
		"apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec:\n  limits: {sessions: 8}\n")
}

// issue spreads things over hundreds of issues; every tenth belongs to issue 7.
func (m *mixed) issue(i int) int {
	if i%10 == 0 {
		return 7
	}
	return 1 + (i*i+i/3)%max(1, min(700, m.n/20))
}

func (m *mixed) session(b *bytes.Buffer, i int) {
	head(b, "Session", fmt.Sprintf("s%d", i))
	phase := "Paused"
	if i < 2 {
		phase = "Active"
	}
	fmt.Fprintf(b, "  title: %s\n  owner: owner-%d\n  issue: %d\n  phase: %s\n", m.words(6), min(i, 3+i*i%17), m.issue(i), phase)
}

func (m *mixed) agent(b *bytes.Buffer, i int) {
	_, agents, _, _, _, _ := m.parts()
	head(b, "Agent", fmt.Sprintf("a%d", i))
	fmt.Fprintf(b, "  role: %s\n  description: %s\n  canClarify: [a%d, a%d]\n",
		[]string{"architect", "engineer", "tester"}[i%3], m.words(12), (i+1)%agents, (i+2)%agents)
	if i == 0 {
		b.WriteString("  runner:\n    command: {argv: [echo, it is as planned]}\n")
	} else {
		b.WriteString("  runner:\n    human: {}\n")
	}
}

// dag has a node or two, seldom dozens.
func (m *mixed) dag(b *bytes.Buffer, i int) {
	sessions, agents, _, _, _, _ := m.parts()
	session, nodes := 2+i%(sessions-2), 1+m.rnd.IntN(3)
	switch {
	case i < 4:
		session, nodes = i%2, 3
	case i%50 == 0:
		nodes = 40
	case i%7 == 0:
		nodes = 12
	}
	head(b, "DAG", fmt.Sprintf("d%d", i))
	fmt.Fprintf(b, "  session: s%d\n  nodes:\n", session)
	for n := range nodes {
		switch {
		case i >= 4 && n%5 == 4:
			fmt.Fprintf(b, "    - {name: n%d, agent: a%d, prompt: %s", n, i%agents, m.words(20))
		case i == 0 && n == 0:
			fmt.Fprintf(b, "    - {name: n%d, agent: a0, prompt: %s", n, m.words(20))
		default:
			fmt.Fprintf(b, "    - {name: n%d, run: [\"true\", %q]", n, m.words(3))
		}
		if n > 0 {
			fmt.Fprintf(b, ", needs: [n%d]", m.rnd.IntN(n))
		}
		b.WriteString("}\n")
	}
}

func (m *mixed) observation(b *bytes.Buffer, i int) {
	_, agents, _, _, _, _ := m.parts()
	head(b, "Observation", fmt.Sprintf("o%d", i))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
	fmt.Fprintf(b, "  agent: a%d\n  issue: %d\n  timestamp: %q\n  entries:\n", i%agents, m.issue(i), at.Format(time.RFC3339))
	for e := range 1 + i%2 {
		fmt.Fprintf(b, "    - {category: %s, content: %s of %d}\n", []string{"decision", "key-fact"}[e], m.words(25), i)
	}
}

func (m *mixed) request(b *bytes.Buffer, i int) {
	_, agents, _, _, _, _ := m.parts()
	head(b, "ClarificationRequest", fmt.Sprintf("q%d", i))
	fmt.Fprintf(b, "  issue: %d\n  from: a%d\n  to: a%d\n  topic: %s\n  question: %s of %d?\n  blocking: %v\n", m.issue(i),
		i%agents, (i%agents+1)%agents, m.words(5), m.words(30), i, i%4 == 0)
}

// reply answers a request, as a person does.
func (m *mixed) reply(b *bytes.Buffer, i int) {
	_, _, _, _, requests, _ := m.parts()
	head(b, "Reply", fmt.Sprintf("r%d", i))
	fmt.Fprintf(b, "  clarification: q%d\n  type: answer\n  from: person-%d\n  body: %s\n", i%requests, i%7, m.words(40))
}

func (m *mixed) words(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = vocabulary[m.rnd.IntN(len(vocabulary))]
	}
	return strings.Join(out, " ")
}
